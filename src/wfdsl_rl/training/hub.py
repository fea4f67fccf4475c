"""Send an exported model to the Hugging Face hub, or to another server with its interface (`HF_ENDPOINT`)."""

from __future__ import annotations

from pathlib import Path

from httpx import HTTPError
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

from wfdsl.errors import UsageError, WfdslError


class NotPushed(WfdslError):  # noqa: N818  (what it says)
    """The hub did not take the model. The export is complete all the same."""


def require_pushable(repository: str) -> None:
    """Refuse what would fail after the export: a name that is none, or no token.

    Raises:
        UsageError: the hub cannot be used so.
    """
    try:
        if repository.count("/") != 1:
            raise HFValidationError("a name is OWNER/NAME")
        HfApi().whoami()
    except HFValidationError as error:
        raise UsageError(f"--push-to-hub {repository}: {error}") from error
    except LocalTokenNotFoundError as error:
        raise UsageError("--push-to-hub needs a token: set HF_TOKEN, or type `hf auth login`") from error
    except (HfHubHTTPError, HTTPError) as error:
        raise UsageError(f"--push-to-hub: {_first_line(error)}") from error


def push(folder: Path, repository: str, *, public: bool) -> str:
    """Send a folder; the address of its page. A repository that does not exist is made, and is private unless told.

    Raises:
        NotPushed: the hub did not take it.
    """
    api = HfApi()
    try:
        made = api.create_repo(repository, private=not public, exist_ok=True)
        api.upload_folder(repo_id=repository, folder_path=folder, commit_message="Export of wfdsl-train")
    except (HfHubHTTPError, HTTPError, RuntimeError, ValueError) as error:  # what the library raises for an upload
        raise NotPushed(
            f"the model is in {folder}, and the hub did not take it: {_first_line(error)}; "
            f"try again with: hf upload {repository} {folder}"
        ) from error
    return str(made)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
