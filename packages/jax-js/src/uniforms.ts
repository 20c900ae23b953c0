/** The numbers of a step that no element has a part in: computed here, with the roundings of every device, and handed to jax-js as scalars. */
import { numpy as np } from "@jax-js/jax";
import type { Rule } from "@opt/core";
import { type ComputeDType, evaluateOp, type RuleOp } from "@opt/core/backend";

/** Of a node the value, or 1 / value. */
export type Source = `${"value" | "inverse"} ${number}`;

export class Uniforms {
  readonly #values: number[] = [];
  readonly #arrays = new Map<Source, np.Array>();

  constructor(
    private readonly rule: Rule,
    scalars: readonly number[],
    private readonly dtype: ComputeDType,
    /** A scalar that is not computed here. It is taken over. */
    private readonly given?: { readonly slot: number; readonly array: np.Array },
  ) {
    const round = dtype === "f32" ? Math.fround : (value: number) => value;
    for (const { op, args, value, uniform } of rule.program.nodes) {
      if (!uniform || op === "buffer") this.#values.push(Number.NaN);
      else if (op === "scalar") this.#values.push(round(scalars[value]!));
      else if (op === "constant") this.#values.push(round(value));
      else {
        const [a, b, c] = args.map((arg) => this.#values[arg]!);
        this.#values.push(evaluateOp(op as RuleOp, dtype, a!, b!, c!));
      }
    }
  }

  /** It belongs to this object. */
  get(source: Source): np.Array {
    const known = this.#arrays.get(source);
    if (known !== undefined) return known;
    const [kind, node] = source.split(" ");
    const value = this.#values[Number(node)]!;
    const { op, value: slot } = this.rule.program.nodes[Number(node)]!;
    if (op === "scalar" && slot === this.given?.slot) return this.given.array;
    const isCondition = op === "less";
    const made = isCondition
      ? np.array(value !== 0)
      : np.array(kind === "inverse" ? evaluateOp("div", this.dtype, 1, value) : value, {
          dtype: this.dtype === "f32" ? np.float32 : np.float64,
        });
    this.#arrays.set(source, made);
    return made;
  }

  dispose(): void {
    for (const array of this.#arrays.values()) array.dispose();
    this.given?.array.dispose();
  }
}
