"""The end of a run with a time limit: how many seconds to keep back for it, by what was measured in this very run.

It consists of an evaluation of the last weights on the part of the split that is evaluated during training, the final
evaluation of the best weights on the whole split, one of training text, samples, the search for copied text, a last
checkpoint and the model's two folders. When time runs short, samples, search and training text give way.
"""

from dataclasses import dataclass

EXIT_SECONDS = 0.5
"""Estimated seconds from the last event to the end of the command."""
COPY_SEARCH_SECONDS, MAX_COPY_SEARCH_SECONDS = 40e-9, 1.0
"""Seconds per token of the text to search it for text copied by samples, and at most in all."""
WRITE_SECONDS = 0.3
"""Estimated seconds to write a model, until it is measured."""
MAX_SAMPLE_FRACTION, MAX_REQUESTED_SAMPLE_FRACTION, MAX_FINAL_SAMPLE_FRACTION = 0.03, 0.06, 0.02
"""Maximum fraction of the time that samples take: during training, with those on request, and at the end."""
EARLY_SAMPLE_FRACTION = 0.25
"""Fraction of all time for samples that may be used from the beginning."""


@dataclass
class Ending:
    """Times after the last step. Estimates hold until something is measured, then the slowest measurement so far."""

    available: float | None
    """Seconds from the first step to the end of the process; None without a time limit."""
    part_tokens: int
    """Tokens of an evaluation during training, and of the evaluation of training text."""
    final_tokens: int
    """Tokens of the whole split; 0 if evaluations during training are over the whole split already."""
    searched_tokens: int
    """Tokens that are searched for copied text."""
    samples: int
    """Number of final samples; 0 for none."""
    token_seconds: float
    """Seconds to evaluate a token."""
    write_seconds: float = WRITE_SECONDS
    """Seconds to write the model."""
    save_seconds: float = 2 * WRITE_SECONDS
    """Seconds to write a checkpoint and the model."""
    sampling_seconds: float = 0.0
    """Seconds that samples have taken so far."""
    has_measured_evaluation: bool = False

    def record_evaluation(self, tokens: int, seconds: float) -> None:
        """Record how long an evaluation took."""
        slowest = self.token_seconds if self.has_measured_evaluation else 0.0
        self.token_seconds, self.has_measured_evaluation = max(slowest, seconds / max(1, tokens)), True

    def record_write(self, seconds: float) -> None:
        """Record how long writing the model took."""
        self.write_seconds = max(self.write_seconds, seconds)
        self.save_seconds = max(self.save_seconds, self.write_seconds)

    def record_save(self, seconds: float) -> None:
        """Record how long writing a checkpoint and the model took."""
        self.save_seconds = max(self.save_seconds, seconds)

    @property
    def writing_seconds(self) -> float:
        """Seconds for what comes last and never gives way: the model's two folders, and the end of the command."""
        return 2 * self.write_seconds + EXIT_SECONDS

    @property
    def search_seconds(self) -> float:
        return min(MAX_COPY_SEARCH_SECONDS, COPY_SEARCH_SECONDS * self.searched_tokens) if self.samples else 0.0

    def seconds(self, last_evaluation: bool = True) -> float:
        """Return the seconds to keep back; without those of the evaluation of the last weights if it is done."""
        tokens = self.final_tokens + self.part_tokens * (2 if last_evaluation else 1)
        samples = MAX_FINAL_SAMPLE_FRACTION * (self.available or 0.0) if self.samples else 0.0
        return tokens * self.token_seconds + samples + self.search_seconds + self.save_seconds + self.writing_seconds

    def sample_seconds(self, seconds: float, *, on_request: bool = False) -> float:
        """Return how long a sample may take, after so many seconds of training; more of the time is for requests."""
        if self.available is None:
            return float("inf")
        if on_request:
            return MAX_REQUESTED_SAMPLE_FRACTION * self.available - self.sampling_seconds
        used = max(EARLY_SAMPLE_FRACTION, seconds / self.available)
        return MAX_SAMPLE_FRACTION * self.available * used - self.sampling_seconds

    def final_sample_seconds(self, seconds: float) -> float:
        """Return how long the final samples may take, after so many seconds since the first step."""
        if self.available is None:
            return float("inf")
        left = self.available - seconds - self.writing_seconds
        return min(left - self.search_seconds, MAX_FINAL_SAMPLE_FRACTION * self.available)

    def final_search_seconds(self, seconds: float) -> float:
        """Return how long the search for copied text may take, after so many seconds since the first step."""
        left = float("inf") if self.available is None else self.available - seconds - self.writing_seconds
        return max(0.0, min(MAX_COPY_SEARCH_SECONDS, left))

    def training_text_tokens(self, seconds: float) -> int:
        """Return how many tokens of training text to evaluate, at least one, after so many seconds."""
        if self.available is None:
            return self.part_tokens
        left = self.available - seconds - self.writing_seconds
        return max(1, min(self.part_tokens, int(0.5 * left / self.token_seconds))) if self.token_seconds else 1
