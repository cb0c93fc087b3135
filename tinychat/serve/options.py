"""Options of `tinychat serve`, each declared once."""

from dataclasses import dataclass

from tinychat.config.option import LayeredOptions, Options, option
from tinychat.config.settings import MAX_INTEGER
from tinychat.errors import UsageError

MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Snapshot of all options of the server.

    Raises:
        SettingError: If a value has the wrong type or is out of bounds.
    """

    host: str = option("127.0.0.1", "address to listen at; any but this machine's own needs a key", example="0.0.0.0")
    port: int = option(8000, "port to listen at; 0 takes a free one", low=0, high=MAX_PORT, example="8080")
    api_key: str | None = option(
        None, "key that clients must send; prefer TINYCHAT_API_KEY, as others can see flags in a list of processes",
        example="some-long-word",
    )  # fmt: skip
    max_body: int = option(1 << 20, "maximum size of a request, in bytes", low=1, high=1 << 30, example="65536")
    max_answer: int = option(4096, "maximum number of tokens of an answer", low=1, high=MAX_INTEGER, example="512")
    max_queue: int = option(128, "maximum number of answers that wait", low=0, high=1 << 16, example="16")
    max_batch: int | None = option(
        None, "maximum number of answers that are generated at once; none chooses a fast one", low=1, high=1024,
        example="16",
    )  # fmt: skip
    max_seconds: float = option(300, "seconds after which an answer ends, its wait included", above=0, example="30")

    def __post_init__(self) -> None:
        SERVER_OPTIONS.parse_fields(self)

    def check_key(self) -> None:
        """Check that no other machine can use the server without a key, and that clients can send the key.

        Raises:
            UsageError: If one can, or they cannot.
        """
        if self.api_key is not None and self.api_key != self.api_key.strip():
            problem = "the key is blank, or begins or ends with a space, so that no client can send it"
            raise UsageError(problem, "set TINYCHAT_API_KEY to a secret word")
        if self.api_key is None and not self.is_local:
            problem = f"at {self.host}, other machines can use the model, and there is no key"
            raise UsageError(problem, "set TINYCHAT_API_KEY to a secret word, which clients send, or leave out --host")

    @property
    def is_local(self) -> bool:
        """Whether this machine alone can reach the address."""
        import ipaddress  # every command reads this file, and only this one needs it

        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


SERVER_OPTIONS = Options.of(ServerOptions)
"""Options of the server by name, in display order."""


class ServerOptionStore(LayeredOptions[ServerOptions]):
    """Effective options of the server, each with its origin."""

    def __init__(self) -> None:
        super().__init__(SERVER_OPTIONS, ServerOptions)
