import { type Algorithm, check, checkBoolean, checkNotNegative, StagedOptimizer, type Stages, show } from "@opt/core";
import type { MuonOptions } from "./options";
import { orthogonalized } from "./orthogonalize";
import { muonDirectionRules, muonRule } from "./rule";
import { advanceMuon, countedMuon, muonScalars } from "./scalars";

const WHERE = "Muon";

const muon: Algorithm<MuonOptions> = {
  name: WHERE,
  defaults: {
    lr: 1e-3,
    weightDecay: 0.1,
    momentum: 0.95,
    nesterov: true,
    nsCoefficients: [3.4445, -4.775, 2.0315],
    eps: 1e-7,
    nsSteps: 5,
    adjustLrFn: "original",
    maximize: false,
  },
  validate({ nesterov, nsCoefficients, nsSteps, adjustLrFn, ...numbers }) {
    for (const name of ["weightDecay", "momentum", "eps"] as const) checkNotNegative(WHERE, name, numbers[name]);
    checkBoolean(WHERE, "nesterov", nesterov);
    const isTriple =
      Array.isArray(nsCoefficients) && nsCoefficients.length === 3 && nsCoefficients.every(Number.isFinite);
    const triple = () => `nsCoefficients must be three numbers, got ${show(nsCoefficients)}.`;
    check(isTriple, "BAD_ARGUMENT", WHERE, triple, "The default is [3.4445, -4.775, 2.0315].");
    const isCount = Number.isInteger(nsSteps) && nsSteps >= 0 && nsSteps < 100;
    const count = () => `nsSteps must be an integer from 0 to 99, got ${show(nsSteps)}.`;
    check(isCount, "BAD_ARGUMENT", WHERE, count, "The default is 5.");
    const isKnown = ["original", "match_rms_adamw"].includes(adjustLrFn);
    const kinds = () => `adjustLrFn must be "original" or "match_rms_adamw", got ${show(adjustLrFn)}.`;
    check(isKnown, "BAD_ARGUMENT", WHERE, kinds, "The second has AdamW's learning rates.");
  },
  checkParameter(name, { shape, dtype }) {
    const complex = () => `parameters must be real, got ${name} of c64.`;
    check(dtype !== "c64", "BAD_DTYPE", WHERE, complex, "Train it by another optimizer, AdamW for example.");
    const problem = () => `parameters must be matrices, got ${name} of ${shape.length} dimensions.`;
    const advice = "Train biases, embeddings and convolutions by another optimizer, AdamW for example.";
    check(shape.length === 2, "BAD_SHAPE", WHERE, problem, advice);
  },
  rule: () => muonRule,
  initialCounters: { step: 0 },
  advance: advanceMuon,
  counted: countedMuon,
  scalars: muonScalars,
};

const stages: Stages<MuonOptions> = {
  rule: ({ nesterov }) => muonDirectionRules[nesterov ? "nesterov" : "plain"],
  transform: orthogonalized,
  transformedBy: ["nesterov", "nsCoefficients", "nsSteps", "eps", "adjustLrFn"],
};

/**
 * Muon, for the matrices of hidden layers: steps along a momentum that a few matrix products have made orthogonal.
 *
 *     m = momentum * m + (1 - momentum) grad          d = m          nesterov: d = momentum * m + (1 - momentum) grad
 *     x = d / |d|, nsSteps times x = a x + (b x x^T + c (x x^T)^2) x
 *     p = p - lr * weightDecay * p - lr * factor * x          factor: sqrt(max(1, rows / columns)), see `adjustLrFn`
 *
 * The numbers are those of torch.optim.Muon (PyTorch 2.13): the momentum's bit for bit in float32, and x up to roundings of bfloat16.
 * Sources: Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024); Liu et al., "Muon is Scalable for LLM Training" (2025).
 *
 * @throws OptError BAD_SHAPE for parameters that are no matrices, BAD_DTYPE for complex ones, BAD_ARGUMENT for an option out of range; further as `Optimizer`
 * @example
 * import { parameter } from "@opt/core";
 * import { Muon } from "@opt/muon";
 * const w = parameter([[1, 2], [3, 4]]);
 * const optimizer = new Muon([w], { lr: 0.02 });
 * w.mul(w).sum().backward();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class Muon extends StagedOptimizer<MuonOptions> {
  protected override define(): Algorithm<MuonOptions> {
    return muon;
  }

  protected override stages(): Stages<MuonOptions> {
    return stages;
  }
}
