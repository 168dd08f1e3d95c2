"""For architects: a program for tiles, written by hand, simulated, drawn as a timeline.

Heat spreads over a plate. Each of the 2944 tiles of two chips holds some rows of it. In
every round tiles swap their outermost rows with their neighbours, by exchange on a chip
and over a link between the chips, and then compute their own rows anew. No framework is
involved: a Program says what tiles hold, send and compute; the simulation says when.
"""

import popple
from popple.program import parse_program
from popple.sim import simulate

NUM_TILES = 1472
NUM_WORKERS = 6
COLUMNS = 600
ROW_BYTES = 4 * COLUMNS

# Vectors over tiles are written in runs: [2944x8] are 8 bytes on each of 2944 tiles.
# Only the last tile of chip 0 and the first tile of chip 1 use the link.
HEAT = """
program "heat" chips=2 tiles={tiles} {{
  variable "plate" [{all}x{plate}] always_live
  variable "edges" [{all}x{edges}]
  main {{
    repeat 2 {{
      sequence {{
        exchange "swap rows" sent=[{all}x{edges}] received=[{all}x{edges}] \
          messages=[{all}x2] reads=["plate"] writes=["edges"]
        global_exchange "swap border" flows=[0->1:{row}, 1->0:{row}] \
          sent=[{rest}x0, 2x{row}, {rest}x0] received=[{rest}x0, 2x{row}, {rest}x0] \
          reads=["plate"] writes=["edges"]
        execute "spread" reads=["plate", "edges"] writes=["plate"] {{
          vertices "Spread" worker count=[{all}x{workers}] cycles=[{all}x{cycles}] \
            code=256 state=32
        }}
      }}
    }}
  }}
}}
"""


def make_program(rows):
    """The program for so many rows on a tile."""
    # The codelet: 20 cycles to begin, then five for each number, rows shared out.
    cycles = 20 + 5 * rows * COLUMNS // NUM_WORKERS
    text = HEAT.format(
        tiles=NUM_TILES,
        all=2 * NUM_TILES,
        rest=NUM_TILES - 1,
        workers=NUM_WORKERS,
        row=ROW_BYTES,
        edges=2 * ROW_BYTES,
        plate=rows * ROW_BYTES,
        cycles=cycles,
    )
    return parse_program(text)


def draw(simulation, width=48):
    """One line for everything that chip 0 does."""
    timeline = simulation.timeline
    for each in timeline.slices:
        if each.chip == 0:
            start, end = (
                round(width * cycle / timeline.total_cycles)
                for cycle in (each.start_cycles, each.end_cycles)
            )
            bar = " " * start + "#" * max(1, end - start)
            print(f"{each.phase:>8} |{bar:{width}}| {each.label}")


def main():
    target = popple.load_target("bow-2000", num_chips=2)
    simulation = simulate(make_program(rows=4), target)
    draw(simulation)
    # On paper: two rounds, six turns of the workers, 20 + 5 x 400 cycles each.
    print(f"compute: {simulation.cost.compute_cycles:,} cycles")
    print(f"fullest tile: {simulation.peak_tile_bytes:,} bytes")

    # What a tile computes grows with its rows, what it sends does not.
    for rows in (1, 4, 16, 512):
        simulation = simulate(make_program(rows), target)
        share = simulation.cost.compute_cycles / simulation.cost.cycles
        fits = "fits" if simulation.fits else "does not fit"
        print(f"{rows:3} rows on a tile: {fits}, {share:.0%} of the time is compute")


if __name__ == "__main__":
    main()
