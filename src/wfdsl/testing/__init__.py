"""For your own tests: strategies that draw workflows and texts, workers that need no model, and a simulator
of refusals, failures, full disks and kills.

    from hypothesis import given
    from wfdsl.testing import completions

    @given(completions())
    def test_my_tool_reads_what_the_parser_reads(written): ...

The strategies need hypothesis (`pip install hypothesis`); `ScriptedWorker`, `check_worker` and `simulate` do not.
"""

from wfdsl.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
