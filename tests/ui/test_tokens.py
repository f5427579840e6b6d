from ui.tokens import token_labels

TOKENS = ["[CLS]", "<b>bold</b>", "bold", "bold", "[SEP]"]


def test_every_token_has_a_label_of_its_own_without_markup():
    labels = token_labels(TOKENS)
    assert len(set(labels)) == len(TOKENS)
    assert labels[1] == "1 &lt;b&gt;bold&lt;/b&gt;"
