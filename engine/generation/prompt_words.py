"""The words of a prompt, and the template by which a model without one of its own answers: after examples."""

from ..installed import rows_of

# With this wording the default decoder keeps most to the words of the passages and repeats itself least. It
# forgets instructions that stand before the passages, and continues numbers in brackets.
SYSTEM = "You are a helpful assistant."
OPENING = "Here are some passages."
REQUEST = "Answer in one sentence."
EXAMPLE_END = "\n"  # behind an answer


def passage_frame(number: int) -> tuple[str, str]:
    """Text before and after a passage in the prompt."""
    return f'Passage {number}: """', '"""\n\n'


def template_by_examples() -> str:
    """Return a chat template in Jinja: instructions, examples, then the messages in the same form.

    A base model goes on as the examples do (Brown et al. 2020, “Language Models are Few-Shot Learners”).
    """
    examples = ""
    for row in rows_of("prompt_examples.csv"):
        passages = enumerate(row["passages"].splitlines(), 1)
        framed = "".join(passage.join(passage_frame(number)) for number, passage in passages)
        asked = f"{row['question']} {REQUEST}\nAnswer: {row['answer']}"
        examples += f"{OPENING}\n\n{framed}{asked}{EXAMPLE_END}\n"
    return (
        "{{ bos_token }}{% for message in messages if message.role == 'system' %}"
        "{{ message.content + '\\n\\n' }}{% endfor %}"
        + examples
        + "{% for message in messages %}{% if message.role == 'user' %}{{ message.content + '\\nAnswer:' }}"
        "{% elif message.role == 'assistant' %}{{ ' ' + message.content + '\\n\\n' }}{% endif %}{% endfor %}"
    )


BY_EXAMPLES = template_by_examples()
