"""The sandbox: untrusted programs run in isolation."""

from wfdsl.grading.sandbox.isolation import SandboxFailed, SandboxLimits, SandboxMissing
from wfdsl.grading.sandbox.process import Ran
from wfdsl.grading.sandbox.sandbox import Sandbox

__all__ = ["Ran", "Sandbox", "SandboxFailed", "SandboxLimits", "SandboxMissing"]
