"""Question answering with BERT: the application behind the notebook.

The data are made, so that nothing has to be downloaded: a sequence begins with a question,
one token, and the answer is where in the text after it that token stands.
"""

import torch
from torch import nn

import poptorch
from popple.notebook import release_devices

NUM_WORDS = 64


class Bert(nn.Module):
    """BERT's encoder with a head that points at the first token of the answer.

    `split` gives the number of layers on each IPU; embedding and head go to the first
    and the last of them.
    """

    def __init__(self, split, width, heads, num_words=NUM_WORDS, length=32):
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


def make_questions(count, length=32, seed=0):
    """Token ids, shape (count, length), and the position of each answer."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.rand(count, NUM_WORDS, generator=generator).argsort(dim=1)
    words = order[:, :length].clone()
    answers = torch.randint(1, length, (count,), generator=generator)
    # The question is the word at the answer's place.
    words[:, 0] = words[torch.arange(count), answers]
    return words, answers


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
        self.change_dataset(make_questions(64, seed=1))

    def __repr__(self):
        return f"QuestionAnswering({self.options.replication_factor} replicas)"

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

    def evaluate(self):
        """How many answers are found, computed on the host."""
        release_devices(self.training_model)
        words, answers = self.questions
        with torch.no_grad():
            found = self.network(words).argmax(-1)
        return {"accuracy": float((found == answers).float().mean())}

    def close(self):
        """Give the IPUs back."""
        release_devices(self.training_model)
