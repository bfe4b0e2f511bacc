"""A contingently acyclic relational model of a social network."""

from cumulant.relational.ground_program import GroundProgram, World
from cumulant.relational.program import Program
from cumulant.relational.program_acyclicity import Acyclicity
from cumulant.relational.program_syntax import ProgramError
from cumulant.relational.smokers_program import smokers_program

__all__ = ["Acyclicity", "GroundProgram", "Program", "ProgramError", "World", "smokers_program"]
