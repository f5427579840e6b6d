"""The pooling strategies in words for people."""

LABELS = {
    "mean": "mean",
    "cls": "[CLS]",
    "pooler": "BERT pooler",
    "max": "max",
    "mean_sqrt_len_tokens": "sum / √length",
    "weightedmean": "mean, later tokens more",
    "lasttoken": "last token",
    "idf": "mean, rare words more (IDF)",
    "attention": "mean, by attention received",
    "last4": "mean of last 4 layers",
    "first_last": "mean of first and last layer",
}
WHAT = {
    "mean": "Every token counts the same. This model was trained for it.",
    "cls": "The vector of the first token, [CLS], alone. Models trained for it put the text's meaning there; "
    "this one was not.",
    "pooler": "[CLS] through one more layer (a matrix and tanh), left over from BERT's pre-training.",
    "max": "The largest value of each dimension over all tokens.",
    "mean_sqrt_len_tokens": "The sum of the tokens over the square root of their number. Its direction, and "
    "so every cosine, is that of the mean; only lengths differ.",
    "weightedmean": "The mean with weights 1, 2, 3 …: made for models whose later tokens have read more.",
    "lasttoken": "The vector of the last token alone, here [SEP]. Made for models that read left to right.",
    "idf": "The mean with weights ln((1 + N) / (1 + df)): the fewer of the chunks hold a word, the more it "
    "counts. [CLS] and [SEP], which all have, count nothing.",
    "attention": "The mean with weights by the attention that each token receives in the last layer.",
    "last4": "The mean over tokens of the average of the last four layers.",
    "first_last": "The mean over tokens of the average of the first and the last layer.",
}
