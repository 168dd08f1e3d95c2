from __future__ import annotations

import pytest
from hypothesis import given, settings

from popple.errors import ProgramError
from popple.program import Program, parse_program, render_program
from tests.program.strategies import programs

TEXT = """\
program "demo" chips=2 tiles=2 {
  variable "x" [1x24, 3x0]
  variable "w" [4x8] category="constant" always_live interleaved
  function "layer" {
    execute "fc" reads=["x", "w"] writes=["x"] op="fc" {
      vertices "Dot" worker count=[4x1] cycles=[4x20] flops=[4x2] edges=3 code=64 \
state=16 source="dot.cpp"
    }
  }
  main {
    sequence name="train" {
      stream_copy "in" direction="fromHost" bytes=[1x24, 3x0] remote writes=["x"]
      exchange "e" sent=[1x8, 3x0] received=[1x0, 1x8, 2x0] messages=[1x0, 1x2, 2x0] \
shared
      global_exchange "g" sent=[4x4] received=[4x4] flows=[0->1:64] hops=1 replicas=4
      repeat 3 {
        call "layer" label="fwd" stage=0 micro_batch=2
      }
      repeat_while "x" expected=5 {
        condition {
          sync "Internal"
        }
        body {
          write_undef "x"
        }
      }
      if "x" name="maybe" {
        then {
          sequence {
          }
        }
        otherwise {
          parallel {
            sync "External" op="all"
          }
        }
      }
      switch "x" {
        case -3 {
          sync "Global"
        }
        default {
          call "layer"
        }
      }
    }
  }
}
"""


def test_every_kind_of_step_prints_and_parses() -> None:
    assert render_program(parse_program(TEXT)) == TEXT


@settings(max_examples=40)
@given(programs())
def test_parsing_is_the_inverse_of_printing(program: Program) -> None:
    assert parse_program(render_program(program)) == program


def with_main(step: str) -> str:
    return f'program "p" chips=1 tiles=1 {{\n  main {{\n    {step}\n  }}\n}}\n'


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        ('synch "Internal"', "line 3: synch is not a step. Did you mean 'sync'"),
        ('sync "Intern"', "sync does not know 'Intern'. Did you mean 'Internal'"),
        ("sync", "sync takes 1 arguments, got 0"),
        ("sync 3", "sync needs a text as argument 1"),
        ("repeat 2 {\n}", "line 3: repeat holds one step, got 0"),
        ("repeat 3", "repeat lacks a block in braces"),
        ('repeat "x" { sync "Internal" }', "repeat needs an integer as argument 1"),
        ('call "f" stag=1', "call has no 'stag'. Did you mean 'stage'"),
        ('call "f" fast', "call has no 'fast'"),
        ('exchange "e" sent=[1x0]', "exchange lacks received=[...]"),
        ('exchange "e" sent=[1x0] received=["a"]', "needs runs like 1400x24"),
        ('exchange "e" sent=3 received=[1x0]', "needs a list as sent"),
        ('write_undef "a" op=["x"]', "needs a text as op"),
        ('execute "e" reads=[1x2] {\n}', "needs texts as reads"),
        ('execute "e" {\nsync "Internal"\n}', "sync does not belong here"),
        ('if "x" {\nthen { sync "Internal" }\n}', "holds then and otherwise"),
        ('switch "x" {\n}', "holds cases, then default"),
        ('sync "Internal" ?', "line 3: cannot read '?'"),
        ('sync "\\q"', "is not a JSON string"),
        ('call "f" reads=["a" "b"]', "expected ',', found"),
        ('sync "Internal" }\n}\n}', "line 5: expected end, found '}'"),
    ],
)
def test_bad_steps_are_named(step: str, complaint: str) -> None:
    with pytest.raises(ProgramError) as caught:
        parse_program(with_main(step))
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "line 1: expected word, found 'the end'"),
        ('graph "g" {}', "line 1: graph is not a program"),
        ('program "p" chips=1 tiles=1 {\n}', "program has no main"),
        ('program "p" chips=1 tiles=1 {\n sync "x"\n}', "line 2: sync does not belong"),
        ('program "p" chips=1 tiles=1 {\n main {', "line 2: expected word"),
        ('program "p" {\n main { sync "Internal" }\n}\n}', "line 4: expected end"),
        (
            'program "p" {\n variable "x" [1x1] category="const"\n}',
            "variable does not know 'const'. Did you mean 'constant'",
        ),
    ],
)
def test_bad_programs_are_named(text: str, complaint: str) -> None:
    with pytest.raises(ProgramError) as caught:
        parse_program(text)
    assert complaint in str(caught.value)
