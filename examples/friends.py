"""Habits and friendships, from tables to who decides independently: `python examples/friends.py [PEOPLE.csv TIES.csv]`.

PEOPLE.csv has a column `id` and a column `smokes` of 0 and 1, TIES.csv the columns `source` and `target`; mutual ties
count. Without files, twelve school classes are simulated. Prints what was learned, who seems to decide independently of
friends, how well habits and ties are predicted beside Markov logic, and a certified interval for the log-likelihood.
"""

import csv
import sys

import networkx as nx

from cumulant.relational import MarkovLogic, SmokersModel, SocialInfluence, auc_difference, evaluate, network_from_graph


def from_files(people: str, ties: str) -> list[nx.DiGraph]:
    """One class."""
    graph = nx.DiGraph()
    with open(people) as file:
        graph.add_nodes_from((row["id"], {"smokes": int(row["smokes"])}) for row in csv.DictReader(file))
    with open(ties) as file:
        graph.add_edges_from((row["source"], row["target"]) for row in csv.DictReader(file))
    return [graph]


def simulated() -> list[nx.Graph]:
    """Twelve classes of 25."""
    truth = SmokersModel([0.6, 0.1, 0.02, 0.35, 0.08, 0.15, 0.05, 0.4, 0.6, 0.5, 0.2, 0.1, 0.9, 0.5])
    graphs = []
    for seed in range(12):
        net = truth.sample(25, seed)
        graph = nx.Graph([(int(x), int(y)) for x, y in net.edges])
        graph.add_nodes_from((x, {"smokes": int(value)}) for x, value in enumerate(net.attribute))
        graphs.append(graph)
    return graphs


def main(arguments: list[str]) -> None:
    """Run the example."""
    graphs = from_files(*arguments) if arguments else simulated()
    learned_from, asked = (graphs[:-1], graphs[-1]) if len(graphs) > 1 else (graphs, graphs[0])
    model = SocialInfluence("smokes", symmetrise="mutual", n_restarts=3, random_state=0).fit(learned_from)
    print(f"{model.status_} after {model.n_iter_} iterations; no certificate of the fit: {model.refusal_}")
    for name, value in model.theta_.items():
        print(f"  {name}: {value:.2f} ({model.trials_[name]:.0f} trials)")
    chances = model.influence_of(asked)
    alone, swayed = max(chances, key=chances.get), min(chances, key=chances.get)
    print(f"decides independently: {alone} with probability {chances[alone]:.2f}, {swayed} with {chances[swayed]:.2f}")
    sways = model.sways_of(asked)
    who, whom = max(sways, key=sways.get)
    print(f"sways: {who} sways {whom} with probability {sways[who, whom]:.2f}")

    net, people = network_from_graph(asked, "smokes", symmetrise="mutual")
    nets = [network_from_graph(graph, "smokes", symmetrise="mutual")[0] for graph in learned_from]
    logic = MarkovLogic().fit(nets)
    x, y = net.pairs.T
    pairs = [(people[a], people[b]) for a, b in net.pairs]
    for what, labels, ours, theirs in (
        ("habits", net.attribute, model.predict_attribute(asked), logic.predict_attribute(net)),
        ("ties", net.ties[x, y], model.predict_tie(asked, pairs), logic.predict_tie(net, net.pairs)),
    ):
        print(f"{what}: {evaluate(labels, ours)}")
        print(f"  area less that of Markov logic: {auc_difference(labels, ours, theirs, draws=500)}")
    print(f"log p of the class: {model.bound_log_likelihood(asked)}")


if __name__ == "__main__":
    main(sys.argv[1:])
