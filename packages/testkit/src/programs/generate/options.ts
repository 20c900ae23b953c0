/** Optimizers and what they are told, at first and later. */
import type { Options } from "../program";
import type { Draft } from "./draft";

export const KINDS = ["Adam", "AdamW", "NAdam", "Adam", "NAdam", "SGD", "RMSprop", "Adamax", "RAdam"];

/** Options of a kind; `often`: how likely each of them is said. */
export function optionsOf(draft: Draft, kind: string, often: number): Options {
  const { random } = draft;
  const all: Record<string, unknown> = {
    lr: random.pick([1e-3, 0.01, 0.1]),
    ...(kind !== "SGD" && { eps: random.pick([1e-8, 1e-3]) }),
    weightDecay: random.pick([0, 0.1]),
    maximize: draft.chance(0.5),
    ...ownOptions(draft, kind),
    regularizer: random.pick([
      { kind: "l1", coefficient: 0.01 },
      { kind: "l2", coefficient: 0.05 },
    ]),
    clip: random.pick([{ norm: 0.5 }, { value: 0.25 }, { value: 0.5, norm: 1 }]),
    stateDType: random.pick(["bf16", "bf16", "f32"]),
    stochasticRounding: random.pick([true, { seed: 5 }, false]),
    ...(kind !== "Muon" && { lazyMode: draft.chance(0.7) }),
  };
  const given = Object.entries(all).filter(([key]) => draft.chance(key === "lr" ? 0.8 : often / 2));
  return { ...Object.fromEntries(given), ...(kind === "SGD" && draft.chance(2 * often) && momentumOf(draft)) };
}

function ownOptions(draft: Draft, kind: string): Options {
  const { random } = draft;
  const betas = random.pick([
    [0.9, 0.999],
    [0.5, 0.9],
    [0, 0.99],
  ]);
  switch (kind) {
    case "SGD":
      return {};
    case "Muon":
      return {
        momentum: random.pick([0.95, 0.5]),
        nesterov: draft.chance(0.3),
        nsSteps: random.pick([1, 5]),
        adjustLrFn: random.pick(["original", "match_rms_adamw"]),
      };
    case "RMSprop":
      // A smaller alpha would leave little of a variance in 16 bits.
      return { alpha: random.pick([0.99, 0.9]), momentum: random.pick([0, 0.9]), centered: draft.chance(0.7) };
    case "Adamax":
      return { betas };
    case "RAdam":
      return { betas, decoupledWeightDecay: draft.chance(0.5) };
    case "NAdam":
      return { betas, momentumDecay: random.pick([4e-3, 0]), decoupledWeightDecay: draft.chance(0.5) };
    default:
      return { betas, amsgrad: draft.chance(0.5), ...(kind === "Adam" && { decoupledWeightDecay: draft.chance(0.5) }) };
  }
}

/** Nesterov's needs momentum and no dampening: all three are said, or none. */
function momentumOf(draft: Draft): Options {
  const nesterov = draft.chance(0.5);
  return {
    momentum: draft.random.pick(nesterov ? [0.9, 0.5] : [0.9, 0]),
    dampening: nesterov ? 0 : draft.random.pick([0, 0.1]),
    nesterov,
  };
}

/** An option that another rule comes with, and its new value. */
export function changeOf({ random }: Draft, kind: string): readonly [name: string, value: unknown] {
  const own: Record<string, readonly (readonly [string, unknown])[]> = {
    SGD: [["momentum", 0.8]],
    RMSprop: [
      ["momentum", 0.8],
      ["centered", true],
    ],
    Muon: [
      ["momentum", 0.8],
      ["nsSteps", 3],
    ],
    NAdam: [["momentumDecay", 0.01]],
    Adam: [["amsgrad", true]],
    AdamW: [["amsgrad", true]],
  };
  return random.pick([
    ["maximize", true],
    ["weightDecay", random.pick([0, 0.05])],
    ["regularizer", random.pick([null, { kind: "l2", coefficient: 0.02 }, { kind: "l1", coefficient: 0.02 }])],
    ["clip", random.pick([null, { norm: 0.3 }, { value: 0.3 }])],
    ...(/SGD|RMSprop|Muon/.test(kind) ? [] : [["betas", [0.4, 0.99]] as const]),
    ...(own[kind] ?? []),
  ] as const);
}
