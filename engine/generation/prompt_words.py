"""The words of a prompt, and the template by which a model without one of its own answers: after examples."""

# With this wording the default decoder keeps most to the words of the passages and repeats itself least. It
# forgets instructions that stand before the passages, and continues numbers in brackets.
SYSTEM = "You are a helpful assistant."
OPENING = "Here are some passages."
REQUEST = "Answer in one sentence."

# Passages, question and answer. A base model goes on as these do (Brown et al. 2020, “Language Models are
# Few-Shot Learners”).
EXAMPLES = (
    (
        ("The ferry to Holm leaves at eight, at noon and at five. Bicycles travel free of charge.",),
        "When does the ferry leave?",
        "The ferry leaves at eight, at noon and at five.",
    ),
    (
        ("Clay was dried in the sun for a week.", "The library of Ashmere burned; its catalogue survived."),
        "What survived the fire?",
        "The catalogue of the library of Ashmere survived.",
    ),
    (
        ("The bridge was designed by Ines Falk and opened by the mayor.",),
        "Who designed the bridge?",
        "Ines Falk designed the bridge.",
    ),
    (
        ("A hive holds forty thousand bees in June, eight thousand in winter.", "Wax melts at 63 degrees."),
        "How many bees does a hive hold in winter?",
        "In winter a hive holds eight thousand bees.",
    ),
)
EXAMPLE_END = "\n"  # behind an answer


def passage_frame(number: int) -> tuple[str, str]:
    """Text before and after a passage in the prompt."""
    return f'Passage {number}: """', '"""\n\n'


def template_by_examples() -> str:
    """Return a chat template in Jinja: instructions, `EXAMPLES`, then the messages in the same form."""
    examples = ""
    for passages, question, answer in EXAMPLES:
        framed = "".join(passage.join(passage_frame(number)) for number, passage in enumerate(passages, 1))
        examples += f"{OPENING}\n\n{framed}{question} {REQUEST}\nAnswer: {answer}{EXAMPLE_END}\n"
    return (
        "{{ bos_token }}{% for message in messages if message.role == 'system' %}"
        "{{ message.content + '\\n\\n' }}{% endfor %}"
        + examples
        + "{% for message in messages %}{% if message.role == 'user' %}{{ message.content + '\\nAnswer:' }}"
        "{% elif message.role == 'assistant' %}{{ ' ' + message.content + '\\n\\n' }}{% endif %}{% endfor %}"
    )


BY_EXAMPLES = template_by_examples()
