"""Forced tokens as drafts: what must come is checked in the same forward pass as the token before it.

With it goes what is likely behind (`Matcher.likely`): since it is only checked, it need not be certain.

exllamav3 verifies drafts like any others: each drafted token is sampled from the model's own logits under the
mask of its place, and kept if that gives the same token. So drafts change how many passes a text takes, never
the text. Sampled tokens are drawn one by one from the same random numbers with and without them.

The hook, `iterate_hybrid_gen`, is exllamav3's own and not a promise: see `version.TESTED`.
"""

from __future__ import annotations

from typing import Any

import torch
from exllamav3 import Generator

from larksong.engine.backends.exllamav3.filter import MatcherFilter


class ForcedDraftGenerator(Generator):  # type: ignore[misc]
    """A generator that drafts what the filters of its jobs force, above its other drafts.

    `forced_draft`: most tokens in one pass.
    """

    def __init__(self, *args: Any, forced_draft: int, **kwargs: Any) -> None:
        # exllamav3 makes room for drafts of so many tokens, and calls the hook.
        super().__init__(*args, hybrid_draft_tokens=forced_draft, **kwargs)

    def iterate_hybrid_gen(self, draft_tokens: torch.Tensor | None, H: int) -> torch.Tensor | None:
        """The drafts of this pass, shape (jobs, width), as the verification wants them: of one width.

        A job's forced tokens go before its regular draft; shorter rows are filled up with their last token,
        which is refused at its place if it is wrong. `H`: most tokens.
        """
        jobs = [job for job in self.active_jobs if job.is_prefill_done()]
        forced = [_forced(job)[:H] for job in jobs]
        # The draft model's buffer has rows for jobs that are not there, too.
        regular: list[list[int]] = (
            [[] for _ in jobs] if draft_tokens is None else draft_tokens[: len(jobs)].tolist()
        )
        if self.draft_recurrent:
            # Its state has read its own drafts: what is verified must begin with them.
            forced = [
                must if list(must[: len(own)]) == own else ()
                for must, own in zip(forced, regular, strict=True)
            ]
        if not any(forced):
            return draft_tokens
        self._draft_conf_round = None  # what the draft model is sure of no longer describes the drafts
        # A row whose draft begins with what must come has more behind it.
        rows = [
            own if own[: len(must)] == list(must) else list(must)
            for must, own in zip(forced, regular, strict=True)
        ]
        width = max(map(len, rows))
        for job, row in zip(jobs, rows, strict=True):
            filler = row[-1] if row else int(job.sequences[0].sequence_ids.torch()[0, -1])
            row += [filler] * (width - len(row))
        ids = torch.tensor(rows, dtype=torch.long)
        if self.draft_model and not (self.dflash_draft or self.mtp_draft or self.draft_recurrent):
            self._show_draft_model(jobs, ids)
        return ids

    def _show_draft_model(self, jobs: list[Any], ids: torch.Tensor) -> None:
        """Let the draft model read what it has not drafted itself, behind the last token of each job.

        Its cache shares the pages of the model's: without this, places of tokens that are taken would hold
        another text, or none. What is refused is written over.
        """
        sequences = [job.sequences[0] for job in jobs]
        pages = max(sequence.block_index_tensor.shape[-1] for sequence in sequences)
        blocks = torch.zeros((len(jobs), pages), dtype=torch.int32)
        for row, sequence in enumerate(sequences):
            blocks[row, : sequence.block_index_tensor.shape[-1]] = sequence.block_index_tensor[0]
        self.draft_model.prefill(
            input_ids=ids,
            params={
                "attn_mode": "flash_attn",
                "block_table": blocks,
                "cache": self.draft_cache,
                "cache_seqlens": torch.tensor(
                    [sequence.kv_position + 1 for sequence in sequences], dtype=torch.int32
                ),
            },
        )


def _forced(job: Any) -> tuple[int, ...]:
    if job.new_tokens < 0 or job.forced_ids is not None:  # a token is healed, or text is put in by hand
        return ()
    ours = [item for item in job.filters if isinstance(item, MatcherFilter)]
    # With other filters beside it, what one of them forces another may refuse.
    return ours[0].draft() if len(ours) == len(job.filters) == 1 else ()
