"""Admixture: documents made of topics, individuals made of populations (latent Dirichlet allocation)."""

from cumulant.admixture.bags_of_words import read_ldac, read_uci
from cumulant.admixture.coalescent import simulate_microsatellites
from cumulant.admixture.collapsed import collapsed_gibbs
from cumulant.admixture.collapsed_posterior import CollapsedPosterior
from cumulant.admixture.collapsed_result import CollapsedResult
from cumulant.admixture.collapsed_sampler import CollapsedGibbs
from cumulant.admixture.data import Corpus
from cumulant.admixture.estimator import Admixture
from cumulant.admixture.evidence import ComponentChoice, EvidenceBridge, annealed_evidence, choose_components
from cumulant.admixture.genotypes import Genotypes
from cumulant.admixture.held_out import HeldOut, held_out_likelihood
from cumulant.admixture.lda import LDA
from cumulant.admixture.mean_field import MeanFieldFit, certify_mean_field, mean_field
from cumulant.admixture.model import AdmixtureModel, Counts, Logs, Parameters
from cumulant.admixture.posterior import MembershipDraws, Mode
from cumulant.admixture.readers import read_genotype_csv, read_genotype_npz, read_genotypes, read_plink, read_structure
from cumulant.admixture.summaries import (
    AgreementReport,
    admixture_distance,
    admixture_level,
    agreement_report,
    mean_distance,
    mean_level,
)
from cumulant.admixture.two_stage import TwoStageGibbs
from cumulant.admixture.variational import AdmixtureFamily, variational_evidence

__all__ = [
    "LDA",
    "Admixture",
    "AdmixtureFamily",
    "AdmixtureModel",
    "AgreementReport",
    "CollapsedGibbs",
    "CollapsedPosterior",
    "CollapsedResult",
    "ComponentChoice",
    "Corpus",
    "Counts",
    "EvidenceBridge",
    "Genotypes",
    "HeldOut",
    "Logs",
    "MeanFieldFit",
    "MembershipDraws",
    "Mode",
    "Parameters",
    "TwoStageGibbs",
    "admixture_distance",
    "admixture_level",
    "agreement_report",
    "annealed_evidence",
    "certify_mean_field",
    "choose_components",
    "collapsed_gibbs",
    "held_out_likelihood",
    "mean_distance",
    "mean_field",
    "mean_level",
    "read_genotype_csv",
    "read_genotype_npz",
    "read_genotypes",
    "read_ldac",
    "read_plink",
    "read_structure",
    "read_uci",
    "simulate_microsatellites",
    "variational_evidence",
]
