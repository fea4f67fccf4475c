"""The sandbox: untrusted programs run in isolation."""

from wfdsl_rl.grading.sandbox.isolation import SandboxFailed, SandboxLimits, SandboxMissing
from wfdsl_rl.grading.sandbox.process import Ran
from wfdsl_rl.grading.sandbox.sandbox import Sandbox

__all__ = ["Ran", "Sandbox", "SandboxFailed", "SandboxLimits", "SandboxMissing"]
