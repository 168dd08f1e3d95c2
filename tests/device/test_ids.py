"""Properties of ids on any machine, and of partitions and copies."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from popple.device import number_devices
from popple.device.partitions import part_of
from popple.target import System, load_system

POD = load_system("bow-pod256")


def make_system(num_chips: int, order: tuple[int, ...]) -> System:
    """A machine of any size, whose chips join groups in a given order."""
    return replace(
        POD,
        name="any",
        num_chips=num_chips,
        chips_per_machine=num_chips,
        rack_chips=num_chips,
        topology="single" if num_chips == 1 else "mesh",
        device_order=order,
    )


@st.composite
def systems(draw: st.DrawFn) -> System:
    num_chips = 2 ** draw(st.integers(0, 6))
    order = draw(st.permutations(range(num_chips)))
    return make_system(num_chips, tuple(order) if draw(st.booleans()) else ())


@given(systems())
def test_n_chips_have_2n_minus_1_ids(system: System) -> None:
    ids = [device.id for device in number_devices(system)]
    assert ids == list(range(2 * system.num_chips - 1))


@given(systems())
def test_groups_of_g_begin_at_2n_minus_2n_over_g(system: System) -> None:
    devices = number_devices(system)
    size = 1
    while size <= system.num_chips:
        first = next(d.id for d in devices if d.num_chips == size)
        assert first == 2 * system.num_chips - 2 * system.num_chips // size
        size *= 2


@given(systems())
def test_each_size_covers_every_chip_once(system: System) -> None:
    sizes: dict[int, list[int]] = {}
    for device in number_devices(system):
        sizes.setdefault(device.num_chips, []).extend(device.chip_ids)
    assert all(sorted(c) == list(range(system.num_chips)) for c in sizes.values())


@given(systems())
def test_a_group_is_two_groups_of_half_its_size(system: System) -> None:
    devices = number_devices(system)
    groups = [set(device.chip_ids) for device in devices]
    for device in devices:
        if device.num_chips > 1:
            halves = [g for g in groups if g < set(device.chip_ids)]
            halves = [g for g in halves if len(g) == device.num_chips // 2]
            assert len(halves) == 2
            assert halves[0].isdisjoint(halves[1])


@given(systems(), st.data())
def test_groups_inside_a_part_are_groups_of_the_whole(
    system: System, data: st.DataObject
) -> None:
    devices = number_devices(system)
    whole = data.draw(st.sampled_from(devices))
    part = part_of(system, whole.chip_ids)
    physical = sorted(whole.chip_ids)
    inner = [{physical[c] for c in d.chip_ids} for d in number_devices(part)]
    assert len(inner) == 2 * whole.num_chips - 1
    assert all(group in [set(d.chip_ids) for d in devices] for group in inner)
