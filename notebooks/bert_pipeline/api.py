"""Question answering with BERT: the application behind the notebook.

The data are made, so that nothing has to be downloaded: a sequence begins with a
question word, and the text after it has one word of each kind that can be asked for,
among others. The answer is the place of the word of the kind that is asked for.
"""

import torch
from torch import nn

import poptorch
from popple.notebook import release_devices

KINDS = {
    "who": ["Ada", "Emmy", "Grace", "Alan"],
    "where": ["Bristol", "Oslo", "Lima", "Kyoto"],
    "when": ["yesterday", "Monday", "May", "noon"],
    "how-many": ["two", "five", "nine", "forty"],
}
_OTHERS = """
    a all and are as at be but by can come do down for from go had has he her here his
    in into is it like long look make many more no not of on one or other out see she so
    some than that the
"""
OTHERS = _OTHERS.split()
WORDS = [*KINDS, *(word for words in KINDS.values() for word in words), *OTHERS]
NUM_WORDS, LENGTH = len(WORDS), 16


class Bert(nn.Module):
    """BERT's encoder with a head that points at the first token of the answer.

    `split` gives the number of layers on each IPU; embedding and head go to the first
    and the last of them.
    """

    def __init__(self, split, width, heads, num_words=NUM_WORDS, length=LENGTH):
        super().__init__()
        words = nn.Embedding(num_words, width)
        self.words = poptorch.BeginBlock(words, "ipu0", ipu_id=0)
        self.places = nn.Parameter(0.02 * torch.randn(length, width))
        layers = []
        for chip, count in enumerate(split):
            own = [self._make_layer(width, heads) for _ in range(count)]
            if chip:
                own[0] = poptorch.BeginBlock(own[0], f"ipu{chip}", ipu_id=chip)
            layers += own
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(width, 1)
        self.loss = nn.CrossEntropyLoss()

    @staticmethod
    def _make_layer(width, heads):
        return nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0.0, "gelu", batch_first=True
        )

    def forward(self, words, answers=None):
        x = self.layers(self.words(words) + self.places)
        scores = self.head(x).squeeze(-1)
        if answers is None:
            return scores
        return scores.argmax(-1), self.loss(scores.float(), answers)


def make_questions(count, seed=0):
    """Numbers of words, shape (count, LENGTH), and the place of each answer."""
    draw = torch.Generator().manual_seed(seed)
    num_kinds, num_each = len(KINDS), len(KINDS["who"])
    first_other = len(WORDS) - len(OTHERS)
    words = torch.randint(first_other, len(WORDS), (count, LENGTH), generator=draw)
    asked = torch.randint(num_kinds, (count,), generator=draw)
    order = torch.rand(count, LENGTH - 1, generator=draw).argsort(dim=1)
    places = 1 + order[:, :num_kinds]
    chosen = torch.randint(num_each, (count, num_kinds), generator=draw)
    # Words of a kind lie beside each other in the list, after the question words.
    words.scatter_(1, places, num_kinds + num_each * torch.arange(num_kinds) + chosen)
    words[:, 0] = asked
    return words, places.gather(1, asked[:, None]).squeeze(1)


def as_text(words):
    """A sequence in words."""
    return " ".join(WORDS[number] for number in words.tolist())


def pipelined(accumulation, replicas=1):
    """Options of a pipeline: one stage to an IPU, copies of it side by side."""
    options = poptorch.Options().replicationFactor(replicas)
    options.setExecutionStrategy(poptorch.PipelinedExecution())
    options.Training.gradientAccumulation(accumulation)
    return options


class QuestionAnswering:
    """Trains a small BERT; a `popple.notebook.Application`."""

    def __init__(self, split, replicas, micro_batch, accumulation, width=64):
        torch.manual_seed(0)
        self.network = Bert(split, width, heads=4)
        self.options = pipelined(accumulation, replicas)
        self.micro_batch = micro_batch
        optimizer = poptorch.optim.AdamW(self.network.parameters(), lr=2e-3)
        self.training_model = poptorch.trainingModel(
            self.network, self.options, optimizer
        )
        self.change_dataset(make_questions(256, seed=1))

    def __repr__(self):
        size = sum(parameter.numel() for parameter in self.network.parameters())
        copies = self.options.replication_factor
        return f"QuestionAnswering({size:,} parameters, {copies} x pipeline)"

    def change_dataset(self, dataset):
        """`dataset`: questions for evaluation, as `make_questions` returns them."""
        self.questions = dataset

    def change_checkpoint(self, checkpoint):
        """Continue with the weights of a file that `save_checkpoint` wrote."""
        self.network.load_state_dict(torch.load(checkpoint, weights_only=True))
        if self.training_model.isCompiled():
            self.training_model.copyWeightsToDevice()

    def save_checkpoint(self, path):
        """Write the present weights."""
        torch.save(self.network.state_dict(), path)

    def train(self, steps):
        """The mean loss of each update."""
        accumulation = self.options.Training.gradient_accumulation
        count = self.micro_batch * accumulation * self.options.replication_factor
        losses = []
        for step in range(steps):
            words, answers = make_questions(count, seed=100 + step)
            losses.append(float(self.training_model(words, answers)[1].mean()))
        return losses

    def answer(self, words):
        """The place of each answer, computed on the host."""
        release_devices(self.training_model)
        with torch.no_grad():
            return self.network(words).argmax(-1)

    def evaluate(self):
        """How many answers are found."""
        words, answers = self.questions
        return {"accuracy": float((self.answer(words) == answers).float().mean())}

    def close(self):
        """Give the IPUs back."""
        release_devices(self.training_model)
