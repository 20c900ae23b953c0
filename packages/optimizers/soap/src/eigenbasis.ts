/** The stages of SOAP: Adam's averages in the eigenbases of a parameter's sides, and how those are kept up. */
import {
  add,
  argsort,
  type Counters,
  defineRule,
  div,
  eigh,
  emptyLike,
  flip,
  fma,
  fusedLerp,
  indexSelect,
  mul,
  nanToNum,
  permute,
  qr,
  type Rule,
  type Shape,
  type Staged,
  type StagedStep,
  sqrt,
  type Tensor,
  zerosLike,
} from "@opt/core";

/** Adam's averages, and the quotient that is the direction. */
const momentsRule = /* @__PURE__ */ defineRule({
  name: "soapMoments",
  buffers: ["nextAvg", "nextSq", "quotient", "expAvg", "expAvgSq", "projected"],
  scalars: ["beta1", "oneMinusBeta1", "beta2", "oneMinusBeta2", "eps"],
  update({ expAvg, expAvgSq, projected }, { beta1, oneMinusBeta1, beta2, oneMinusBeta2, eps }) {
    const nextAvg = fma(oneMinusBeta1, projected, mul(expAvg, beta1));
    const nextSq = fma(oneMinusBeta2, mul(projected, projected), mul(expAvgSq, beta2));
    return { nextAvg, nextSq, quotient: div(nextAvg, add(sqrt(nextSq), eps)) };
  },
});

const factorRule = /* @__PURE__ */ defineRule({
  name: "soapFactor",
  buffers: ["next", "factor", "outer"],
  scalars: ["weight"],
  update: ({ factor, outer }, { weight }) => ({ next: fusedLerp(factor, outer, weight) }),
});

export const stageRules: readonly Rule[] = [momentsRule, factorRule];

interface EigenbasisOptions {
  readonly preconditionFrequency: number;
  readonly maxPreconditionerDim: number;
  lr: number;
  maximize: boolean;
}

/** The sides that have a preconditioner. */
function sidesOf(shape: Shape, { maxPreconditionerDim }: Pick<EigenbasisOptions, "maxPreconditionerDim">): number[] {
  if (shape.length < 2) return [];
  return shape.flatMap((length, side) => (length > 0 && length <= maxPreconditionerDim ? [side] : []));
}

/** Adam's averages, and for each side its preconditioner and the eigenbasis. */
export function stateShapes(shape: Shape, options: EigenbasisOptions): Readonly<Record<string, Shape>> {
  const ofSides = sidesOf(shape, options).flatMap((side) => {
    const square = [shape[side]!, shape[side]!];
    return [
      [`factor_${side}`, square],
      [`basis_${side}`, square],
    ];
  });
  return { exp_avg: shape, exp_avg_sq: shape, ...Object.fromEntries(ofSides) };
}

/** "first" makes the bases, "refresh" turns them. */
export function phaseOf({ preconditionFrequency }: EigenbasisOptions, { step }: Counters): string {
  if (step === 1) return "first";
  return (step - 1) % preconditionFrequency === 0 ? "refresh" : "between";
}

/** The first dimension as rows. */
const flat = (x: Tensor) => x.reshape([x.shape[0]!, x.shape[0] === 0 ? 0 : x.size / x.shape[0]!]);

/**
 * x with its dimensions turned by bases: y[j0, j1, ...] = sum of B0[i0, j0] B1[i1, j1] ... x[i0, i1, ...]. `isBack`: with their transposes.
 * A dimension at a time goes from the front to the back.
 */
function turned(x: Tensor, bases: readonly (Tensor | undefined)[], isBack = false): Tensor {
  return bases.reduce<Tensor>((result, basis) => {
    const [first, ...rest] = result.shape as [number, ...number[]];
    if (basis === undefined) return permute(result, [...rest.map((_, i) => i + 1), 0]);
    return flat(result)
      .matmul(basis, { transposeA: true, transposeB: isBack })
      .reshape([...rest, first]);
  }, x);
}

/** The products of x with itself over all dimensions but one. */
function outerOf(x: Tensor, side: number): Tensor {
  const others = x.shape.map((_, i) => i).filter((i) => i !== side);
  const rows = flat(side === 0 ? x : permute(x, [side, ...others]));
  return rows.matmul(rows, { transposeB: true });
}

/** A matrix for `eigh` and `qr`, which reject what is not finite. A step that is skipped for that gets here. */
const finite = (x: Tensor) => nanToNum(x, { nan: 0, posinf: 0, neginf: 0 });

/** A side of a parameter and what becomes of it. */
interface Side {
  readonly side: number;
  readonly factor: Tensor;
  readonly basis: Tensor;
  readonly next: Tensor;
}

/** A parameter in this step. */
interface Member {
  readonly gradient: Tensor;
  readonly expAvg: Tensor;
  readonly expAvgSq: Tensor;
  readonly sides: readonly Side[];
  /** By dimension; undefined where it has none. */
  readonly bases: readonly (Tensor | undefined)[];
}

function memberOf(gradient: Tensor, state: ReadonlyMap<string, Tensor>): Member {
  const sides = gradient.shape.flatMap((_, side): Side[] => {
    const factor = state.get(`factor_${side}`);
    if (factor === undefined) return [];
    return [{ side, factor, basis: state.get(`basis_${side}`)!, next: emptyLike(factor) }];
  });
  const bases = gradient.shape.map((_, side) => state.get(`basis_${side}`));
  return { gradient, expAvg: state.get("exp_avg")!, expAvgSq: state.get("exp_avg_sq")!, sides, bases };
}

/** The directions of a step, and what its state becomes. */
export function preconditioned<Options extends EigenbasisOptions>(
  gradients: readonly Tensor[],
  { options, counters, states, launch }: StagedStep<Options>,
): Staged {
  const phase = phaseOf(options, counters);
  const members = gradients.map((gradient, i) => memberOf(gradient, states[i]!));
  const sides = members.flatMap(({ gradient, sides }) => sides.map((each) => ({ gradient, ...each })));
  if (sides.length > 0) {
    launch(
      factorRule,
      sides.map(({ gradient, side, factor, next }) => [next, factor, outerOf(gradient, side)]),
    );
  }
  const factors = sides.map(({ factor, next }) => [factor, next] as const);
  if (phase === "first") {
    // Columns by falling eigenvalue.
    const bases = sides.map(({ basis, next }) => [basis, flip(eigh(finite(next)).eigenvectors, [1])] as const);
    const still = gradients.map((gradient) => zerosLike(gradient));
    return { directions: still, states: [...factors, ...bases] };
  }
  const moments = members.map(({ gradient, expAvg, expAvgSq, bases }) => {
    const [nextAvg, nextSq, quotient] = [emptyLike(gradient), emptyLike(gradient), emptyLike(gradient)];
    return [nextAvg, nextSq, quotient, expAvg, expAvgSq, turned(gradient, bases)] as const;
  });
  launch(momentsRule, moments);
  const directions = members.map(({ bases }, i) => turned(moments[i]![2], bases, true));
  const renewed = members.flatMap((member, i) => {
    const [nextAvg, nextSq] = moments[i]!;
    return phase === "refresh" ? refreshed(member, nextAvg, nextSq) : averagesOf(member, nextAvg, nextSq);
  });
  return { directions, states: [...factors, ...renewed] };
}

type Renewed = readonly (readonly [state: Tensor, next: Tensor])[];

const averagesOf = ({ expAvg, expAvgSq }: Member, nextAvg: Tensor, nextSq: Tensor): Renewed => [
  [expAvg, nextAvg],
  [expAvgSq, nextSq],
];

/** One round of orthogonal iteration for each basis; the averages turn with them. */
function refreshed(member: Member, nextAvg: Tensor, nextSq: Tensor): Renewed {
  let squares = nextSq;
  const bases = [...member.bases];
  const turns = member.sides.map(({ side, basis, next }) => {
    const product = next.matmul(basis);
    const eigenvalues = basis.mul(product).sum(0);
    const order = argsort(eigenvalues, 0, { descending: true });
    squares = indexSelect(squares, side, order);
    const turn = qr(finite(indexSelect(product, 1, order))).q;
    bases[side] = turn;
    return [basis, turn] as const;
  });
  const average = turned(turned(nextAvg, member.bases, true), bases);
  return [...averagesOf(member, average, squares), ...turns];
}
