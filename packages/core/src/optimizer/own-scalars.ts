/** Scalars of which each parameter of a launch has its own: it takes a launch for each. */
import type { Scalar } from "../backend/memory";
import type { ScalarSource } from "../device/scalar-source";
import { cast } from "../ops";
import type { Rule } from "../rule/rule";
import { Tensor } from "../tensor/tensor";
import { byteSize, type ComputeDType } from "../values/dtype";

/** By name a number for each parameter, or a tensor with one for all. */
export type OwnScalars = Readonly<Record<string, readonly number[] | Tensor>>;

/** Those of parameter i, by their place in the rule. */
export function ownScalarsOf(
  rule: Rule,
  dtype: ComputeDType,
  scalars: OwnScalars,
  i: number,
): ReadonlyMap<number, Scalar> {
  const places = Object.entries(scalars).map(([name, given]): [number, Scalar] => {
    const place = rule.scalars.indexOf(name);
    if (!(given instanceof Tensor)) return [place, given[i]!];
    const slice = cast(given, dtype).memorySlice();
    const at = given.size === 1 ? 0 : i;
    return [place, { ...slice, byteOffset: slice.byteOffset + at * byteSize(dtype), length: 1 }];
  });
  return new Map(places.filter(([place]) => place >= 0));
}

/** The launch of one parameter, whose scalars are partly its own. */
export class OneOf implements ScalarSource {
  constructor(
    private readonly all: ScalarSource,
    private readonly own: ReadonlyMap<number, Scalar>,
    private readonly isLast: boolean,
  ) {}

  next(scalars = this.all.next()): readonly Scalar[] {
    return scalars.map((scalar, s) => this.own.get(s) ?? scalar);
  }

  /** A step counts once for all. */
  commit(): void {
    if (this.isLast) this.all.commit();
  }
}
