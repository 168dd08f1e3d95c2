"""poptorch_geometric: a graph network that finds the communities in random graphs.

Graphs differ in size, programs of the IPU do not: every batch is padded to the same
number of nodes, edges and graphs, and a mask says which nodes are real. A node knows
nothing but a very noisy hint at its community; its neighbours know more together.
"""

from collections import Counter

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import stochastic_blockmodel_graph

import popple
import poptorch
from poptorch_geometric import FixedSizeDataLoader

NUM_COMMUNITIES = 4
NUM_GRAPHS = 64
EPOCHS = 4


class Network(nn.Module):
    """Two graph convolutions; each mixes what neighbours know."""

    def __init__(self):
        super().__init__()
        self.conv1 = GCNConv(NUM_COMMUNITIES, 32, add_self_loops=False)
        self.conv2 = GCNConv(32, NUM_COMMUNITIES, add_self_loops=False)

    def forward(self, x, edge_index, y, nodes_mask):
        x = torch.relu(self.conv1(x, edge_index))
        logits = self.conv2(x, edge_index)
        losses = nn.functional.cross_entropy(logits, y, reduction="none")
        # Padding must not teach anything.
        loss = (losses * nodes_mask).sum() / nodes_mask.sum()
        return logits, poptorch.identity_loss(loss, reduction="none")


def make_graph():
    """Communities of 10 to 19 nodes; most edges stay inside one."""
    sizes = torch.randint(10, 20, (NUM_COMMUNITIES,))
    chances = torch.full((NUM_COMMUNITIES, NUM_COMMUNITIES), 0.03)
    edges = stochastic_blockmodel_graph(sizes, chances.fill_diagonal_(0.4))
    y = torch.arange(NUM_COMMUNITIES).repeat_interleave(sizes)
    hints = nn.functional.one_hot(y, NUM_COMMUNITIES).float()
    return Data(x=hints + torch.randn_like(hints), edge_index=edges, y=y)


def train(training_model, loader):
    """Print loss and accuracy of every epoch."""
    for epoch in range(EPOCHS):
        losses, correct, count = [], 0, 0
        for batch in loader:
            is_real = batch.nodes_mask
            logits, loss = training_model(batch.x, batch.edge_index, batch.y, is_real)
            losses.append(loss)
            correct += int(((logits.argmax(dim=1) == batch.y) & is_real).sum())
            count += int(is_real.sum())
        loss = torch.stack(losses).mean()
        print(f"epoch {epoch + 1}: loss {loss:.2f}, {correct / count:.0%} right")


def main():
    torch.manual_seed(0)
    graphs = [make_graph() for _ in range(NUM_GRAPHS)]
    nodes = [graph.num_nodes for graph in graphs]
    print(f"{NUM_GRAPHS} graphs of {min(nodes)} to {max(nodes)} nodes")
    is_right = torch.cat([graph.x.argmax(dim=1) == graph.y for graph in graphs])
    print(f"hints alone: {is_right.float().mean():.0%} right")

    # Eight graphs to a batch, and a ninth that holds the padding.
    options = poptorch.Options()
    loader = FixedSizeDataLoader(graphs, batch_size=9, options=options)
    sizes = {batch.num_nodes for batch in loader}
    print(f"nodes of the batches, padding included: {sizes}")

    model = Network()
    optimizer = poptorch.optim.Adam(model.parameters(), lr=0.02)
    training_model = poptorch.trainingModel(model, options, optimizer)
    train(training_model, loader)
    training_model.detachFromDevice()

    cycles = Counter()
    for part in popple.explain(training_model).parts:
        cycles[part.operation.kind] += part.operation.cycles
    along_edges = cycles["gather"] + cycles["scatter_add"]
    print(f"messages along edges: {along_edges / cycles.total():.0%} of the cycles")
    print(f"matrix products: {cycles['matmul'] / cycles.total():.0%} of the cycles")


if __name__ == "__main__":
    main()
