"""Metrics in Prometheus' text format: requests by address, runs by model, and what workers did for each.

They are counted from the events of runs, so a reply that came from the journal counts nothing, and two requests that
wait for the same run count its calls once.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from wfdsl.interpreter.events import CompletionFinished, Event, FellBack, Retried, RunFinished, StepFinished
from wfdsl.protocols import Usage

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200, 3600)
"""Upper bounds of buckets: a run takes from milliseconds to an hour. Our choice."""

disable_created_metrics()  # type: ignore[no-untyped-call]  # a time for each counter, which nothing reads


class Metrics:
    """What one server has counted since it started."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"wfdsl_{name}", about, labels, registry=own)

        self._requests = counter("requests", "Requests that were answered", "path", "status")
        self._request_s = Histogram(
            "wfdsl_request_seconds", "Seconds until a response had ended", ["path"], buckets=_SECONDS, registry=own
        )
        self.in_progress = Gauge("wfdsl_requests_in_progress", "Requests that are being answered", registry=own)
        self._runs = counter("runs", "Runs that ended, by how", "model", "status")
        self._run_s = Histogram("wfdsl_run_seconds", "Seconds of a run", ["model"], buckets=_SECONDS, registry=own)
        self._calls = counter("calls", "Calls of workers that ended, by how", "model", "worker", "status")
        self._tokens = counter("tokens", "Tokens of workers' calls", "model", "worker", "kind")
        self._usd = counter("cost_usd", "US dollars of workers' calls with a price", "model", "worker")
        self._retries = counter("retries", "Attempts of calls that failed", "model")
        self._fallbacks = counter("fallbacks", "Calls that a fallback worker got", "model", "worker")

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(path, str(status)).inc()
        self._request_s.labels(path).observe(seconds)

    def event(self, model: str, event: Event) -> None:
        """Count what happened in a run of a model."""
        match event:
            case StepFinished(record=record) if not record.replayed and not record.nested:
                self._call(model, record.worker_name, record.status, record.usage, record.paid_usd)
            case CompletionFinished(reply=reply) if reply is not None:
                self._call(model, "conductor", "done", reply.usage, reply.paid_usd)
            case Retried():
                self._retries.labels(model).inc()
            case FellBack(worker_name=worker):
                self._fallbacks.labels(model, worker).inc()
            case RunFinished(path=(), run=run):
                self._runs.labels(model, run.status).inc()
                self._run_s.labels(model).observe(run.seconds or 0.0)

    def page(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry)

    def _call(self, model: str, worker: str, status: str, usage: Usage, usd: float | None) -> None:
        self._calls.labels(model, worker, status).inc()
        self._tokens.labels(model, worker, "input").inc(usage.input_tokens)
        self._tokens.labels(model, worker, "output").inc(usage.output_tokens)
        self._usd.labels(model, worker).inc(usd or 0.0)
