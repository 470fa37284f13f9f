"""Stand-ins for the models of each family: a tokenizer that holds its markers as tokens, and its template."""

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import AddedToken

from larksong.engine.backends.replay import ReplayBackend
from larksong.engine.vocabulary import Vocabulary
from tests.support.tokenizers import byte_level_tokenizer

_CHATML = ("<|im_start|>", "<|im_end|>")
_QWEN = (
    *_CHATML,
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</think>",
    "<tool_response>",
    "</tool_response>",
)
_GLM = (
    *("[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"),
    *("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    *("<think>", "</think>", "<tool_response>", "</tool_response>"),
)
_DEEPSEEK = (
    *(
        "<｜begin▁of▁sentence｜>",
        "<｜end▁of▁sentence｜>",
        "<｜User｜>",
        "<｜Assistant｜>",
    ),
    *("<think>", "</think>"),
)
_KIMI = (
    *("<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>", "<|im_end|>"),
    *("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>"),
    *("<|tool_call_end|>", "<|tool_call_argument_begin|>", "<think>", "</think>"),
)
_MISTRAL = (
    *("<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "[TOOL_RESULTS]"),
    *("[/TOOL_RESULTS]", "[TOOL_CONTENT]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
    *("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[THINK]", "[/THINK]"),
)
_GEMMA = (
    *("<bos>", "<|turn>", "<turn|>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>", '<|"|>'),
    *("<|tool_response>", "<tool_response|>", "<|channel>", "<channel|>", "<|think|>"),
)


@dataclass(frozen=True)
class Family:
    """A model family: its wire format, one of its templates, the markers of its tokenizer, what ends a turn."""

    format: str
    template: str
    markers: tuple[str, ...]
    ends: tuple[str, ...]
    bos: str = ""

    def backend(self, template: str | None, *texts: str) -> ReplayBackend:
        """A backend with this family's tokenizer that writes `texts`."""
        added = tuple(AddedToken(marker, special=True, normalized=False) for marker in self.markers)
        tokenizer = byte_level_tokenizer(added=added)
        return ReplayBackend(
            tokenizer,
            Vocabulary.from_tokenizer(tokenizer, eos=self.ends),
            texts,
            name="family",
            context_length=1 << 20,
            chat_template=template,
            bos_token=self.bos,
            eos_token=self.ends[0],
        )


FAMILIES = (
    Family("qwen3_coder", "Qwen3-Coder", _QWEN, ("<|im_end|>",)),
    Family("qwen3_coder", "Qwen3.5-4B", _QWEN, ("<|im_end|>",)),
    Family("hermes", "Qwen-Qwen3-0.6B", _QWEN, ("<|im_end|>",)),
    Family("hermes", "Qwen-Qwen2.5-7B-Instruct", _QWEN, ("<|im_end|>",)),
    Family("glm_4_5", "GLM-4.6", _GLM, ("<|observation|>", "<|user|>")),
    Family("glm_4_7", "GLM-4.7-Flash", _GLM, ("<|observation|>", "<|user|>")),
    Family(
        "minimax_m2",
        "MiniMax-M2",
        ("]~!b[", "]~b]", "[e~[", "<minimax:tool_call>", "</minimax:tool_call>", "<think>", "</think>"),
        ("[e~[",),
    ),
    Family("deepseek_v3_2", "deepseek-ai-DeepSeek-V3.2", _DEEPSEEK, ("<｜end▁of▁sentence｜>",), _DEEPSEEK[0]),
    Family("deepseek_v4", "deepseek-ai-DeepSeek-V4", _DEEPSEEK, ("<｜end▁of▁sentence｜>",), _DEEPSEEK[0]),
    Family("kimi_k2", "Kimi-K2-Instruct", _KIMI, ("<|im_end|>",)),
    Family("kimi_k2", "Kimi-K2-Thinking", _KIMI, ("<|im_end|>",)),
    Family(
        "harmony",
        "openai-gpt-oss-120b",
        ("<|return|>", "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|call|>"),
        ("<|return|>", "<|call|>"),
    ),
    Family("mistral_v3", "mistralai-Mistral-Nemo-Instruct-2407", _MISTRAL, ("</s>",), "<s>"),
    Family("mistral_v11", "Mistral-Small-3.2-24B-Instruct-2506", _MISTRAL, ("</s>",), "<s>"),
    Family("mistral_v13", "unsloth-mistral-Devstral-Small-2507", _MISTRAL, ("</s>",), "<s>"),
    Family("mistral_v13", "mistralai-Ministral-3-14B-Reasoning-2512", _MISTRAL, ("</s>",), "<s>"),
    Family(
        "llama3_json",
        "meta-llama-Llama-3.1-8B-Instruct",
        *(("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|python_tag|>"),),
        ("<|eot_id|>",),
        "<|begin_of_text|>",
    ),
    Family("gemma4", "google-gemma-4-31B-it", _GEMMA, ("<|tool_response>", "<turn|>"), "<bos>"),
    Family("gemma4", "google-gemma-4-31B-it-interleaved", _GEMMA, ("<|tool_response>", "<turn|>"), "<bos>"),
)
