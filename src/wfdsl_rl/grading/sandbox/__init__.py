"""The sandbox in which programs that nobody has read are run."""

from wfdsl_rl.grading.sandbox.errors import SandboxFailed, SandboxMissing
from wfdsl_rl.grading.sandbox.limits import SandboxLimits
from wfdsl_rl.grading.sandbox.sandbox import Ran, Sandbox

__all__ = ["Ran", "Sandbox", "SandboxFailed", "SandboxLimits", "SandboxMissing"]
