"""`popple pod`: make, list, show and remove the pods that programs attach to.

In: a kind of system and a name. Out: text. Without a pod, programs run on the default
machine, which never blocks; with one, they hold its IPUs for themselves alone.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from popple.text_table import render_table
from popple.tools.command import Command

if TYPE_CHECKING:
    from popple.device import CreatedPod, Holder


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    make = _add(actions.add_parser, "create", "Make a pod for programs to use.")
    make.add_argument("kind", metavar="NAME", help="a system of 'popple targets'")
    make.add_argument("--name", metavar="N", default="", help="another name for it")
    make.add_argument(
        "--shared", action="store_true", help="for all users of this host"
    )
    make.set_defaults(action=create)
    _add(actions.add_parser, "list", "List the pods.").set_defaults(action=list_all)
    named: tuple[tuple[str, str, Callable[[Namespace], str]], ...] = (
        ("show", "Show a pod's partitions and who holds its chips.", show),
        ("remove", "Remove a pod that no program uses.", remove),
    )
    for word, summary, action in named:
        child = _add(actions.add_parser, word, summary)
        child.add_argument("name", metavar="NAME", help="a name of 'popple pod list'")
        child.set_defaults(action=action)


def _add(
    add_parser: Callable[..., ArgumentParser], word: str, summary: str
) -> ArgumentParser:
    return add_parser(word, help=summary, description=summary, allow_abbrev=False)


def run(arguments: Namespace) -> int:
    """Do one action and print what came of it."""
    print(arguments.action(arguments))
    return 0


def create(arguments: Namespace) -> str:
    """Make a pod."""
    from popple.device import create_pod, list_pods

    pod = create_pod(arguments.kind, arguments.name, is_shared=arguments.shared)
    name = pod.machine.name
    who = "all users of this host" if pod.machine.is_shared else "you"
    first = list_pods()[0].machine.name
    # A pod of one's own goes before a shared one, however new that is.
    use = "Programs" if first == name else f"With --target {name}, programs"
    return f"Created pod {name}, {_describe(pod)}, for {who}. {use} attach to it."


def list_all(arguments: Namespace) -> str:
    """One line per pod; the first of them is in force."""
    from popple.device import list_pods

    pods = list_pods()
    if not pods:
        return "There is no pod: programs run on the default machine."
    rows = (
        (
            pod.machine.name,
            pod.machine.system.name,
            str(pod.machine.system.num_chips),
            "shared" if pod.machine.is_shared else "own",
            pod.user,
            "in force" if pod is pods[0] else "",
        )
        for pod in pods
    )
    header = ("pod", "system", "chips", "kind", "created by", "")
    return render_table(header, rows, ("chips",))


def show(arguments: Namespace) -> str:
    """The partitions and holders of one pod."""
    from popple.device import Pod, get_pod, list_partitions

    pod = get_pod(arguments.name)
    lines = [f"{pod.machine.name}: {_describe(pod)}"]
    for part in list_partitions():
        if part.pod == pod.machine.name:
            chips = ", ".join(map(str, part.machine.chips))
            lines.append(f"partition {part.name}: chips {chips}")
    holders = Pod(pod.machine).holders()
    return "\n".join([*lines, _render_holders(holders)])


def _describe(pod: CreatedPod) -> str:
    system = pod.machine.system
    return f"a {system.name} of {system.num_chips} chips"


def _render_holders(holders: tuple[Holder, ...]) -> str:
    if not holders:
        return "No chip is held."
    rows = ((str(h.chip_id), str(h.pid), h.user, h.since, h.command) for h in holders)
    return render_table(("chip", "process", "user", "since", "command"), rows)


def remove(arguments: Namespace) -> str:
    """Remove a pod with its partitions."""
    from popple.device import remove_pod

    return f"Removed pod {remove_pod(arguments.name).machine.name}."


COMMAND = Command("pod", "Make, list and remove virtual pods.", add_arguments, run)
