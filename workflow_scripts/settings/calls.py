"""How an API is called."""

from pydantic import Field

from workflow_scripts.config import Settings


class Calls(Settings):
    """How an API is called; none of it decides an answer."""

    timeout_seconds: float = Field(gt=0, description="Longest silence of the server.")
    attempts: int = Field(
        ge=1, description="Attempts at one request that gets no answer, including the first."
    )
    first_wait_seconds: float = Field(
        ge=0, description="Upper limit of the random wait before the second attempt; doubles each time."
    )
    longest_wait_seconds: float = Field(
        gt=0, description="Longest wait between attempts; a server that asks for more ends the job."
    )
    workers: int = Field(ge=1, le=256, description="Requests of one job that are under way at the same time.")
    per_second: float | None = Field(
        gt=0, description="Most requests per second of all jobs together; null: no limit."
    )
    per_day: int | None = Field(
        gt=0, description="Most requests a day (UTC) of all jobs together; null: no limit."
    )

    @property
    def attempt_seconds(self) -> float:
        """No attempt takes longer, whatever a server sends; waiting for its turn is not counted."""
        return self.timeout_seconds + 60

    @property
    def longest_seconds(self) -> float:
        """No request takes longer, with all its attempts and the waits between them."""
        return self.attempts * (self.attempt_seconds + self.longest_wait_seconds)
