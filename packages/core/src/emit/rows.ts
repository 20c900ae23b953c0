/** Row programs in C-like languages: the numbers of a row in order, each reduction a loop over its elements. */

import type { Op } from "../rule/expression";
import { keptWeights, neededFor, partsOf, type RowProgram } from "../rule/rows/row-program";
import type { ComputeDType } from "../values/dtype";
import { block } from "./blocks";
import type { Dialect } from "./dialect";

/** What is computed for one element: statements, and then the text of its value. */
export interface RowElement {
  readonly lines: readonly string[];
  readonly value: string;
}

export interface RowLanguage {
  readonly dialect: Dialect;
  readonly dtype: ComputeDType;
  /** Text of a number in float64 or in the dtype. */
  constant(value: number, wide: boolean): string;
  declare(name: string, value: string, wide: boolean, kind: "number" | "condition"): string;
  /** To float64 or to the dtype. */
  convert(value: string, wide: boolean): string;
  scalar(slot: number): string;
  /** Where a branch ends rows without a label: reads `label`, and tells whether it is the ignored one. */
  readonly labels?: { readonly read: string; readonly isIgnored: string };
  /** A function, in the precision of the dtype: `log` of float64 numbers, in f32 programs to the accuracy of float32. */
  call(name: "weight" | "log", x: string): string;
  /** An input's element at an index of its row, or its number. */
  input(slot: number, index: string): string;
  /** An element that was kept in the row of an output. */
  kept(slot: number, index: string): string;
  /** A loop that keeps elements; without it nothing is kept. */
  keep?(slot: number, element: RowElement): string[];
  /** A loop that leaves a number of this name. Sums widen what they add. */
  reduce(op: "largest" | "sum", name: string, element: RowElement): string[];
}

/** Writes one program in one language. */
export class RowWriter {
  readonly #kept: ReadonlyMap<number, number>;
  readonly #isKept = new Set<number>();

  constructor(
    readonly program: RowProgram,
    readonly language: RowLanguage,
  ) {
    this.#kept = language.keep ? keptWeights(program) : new Map();
  }

  /** Statements for the numbers of a row that some nodes need. */
  numbers(roots: readonly number[]): string[] {
    const { program, language } = this;
    const { nodes } = program;
    const lines: string[] = [];
    for (const n of neededFor(nodes, roots)) {
      const { op, args, each, wide } = nodes[n]!;
      if (each || op === "constant" || op === "count" || op === "scalar") continue;
      if (op === "sum" || op === "largest") {
        for (const part of partsOf(program, args[0]!)) {
          const slot = this.#kept.get(part);
          if (slot === undefined || this.#isKept.has(part)) continue;
          lines.push(...language.keep!(slot, this.element(part, "i")));
          this.#isKept.add(part);
        }
        const { op: last, args: narrowed } = nodes[args[0]!]!;
        lines.push(...language.reduce(op, `n${n}`, this.element(last === "widen" ? narrowed[0]! : args[0]!, "i")));
      } else {
        const { lines: before, value } = op === "atLabel" ? this.element(args[0]!, "label") : this.element(n, "");
        lines.push(...before, language.declare(`n${n}`, value, wide, op === "less" ? "condition" : "number"));
      }
    }
    return lines;
  }

  /** Reads the row's label. If it is ignored or is no element, the row ends with the statements of `missing`. */
  label(missing: readonly string[]): string[] {
    const { labels } = this.language;
    if (!this.program.labels || labels === undefined) return [];
    const isMissing = `${labels.isIgnored} || label < 0 || label >= length`;
    return [labels.read, ...block(`if (${isMissing})`, [...missing, "continue;"])];
  }

  /** A node at an index. Numbers of the row have been declared. */
  element(target: number, index: string): RowElement {
    const { program, language } = this;
    const { nodes } = program;
    const parts = partsOf(program, target);
    const uses = new Map<number, number>();
    for (const part of parts) for (const arg of nodes[part]!.args) uses.set(arg, (uses.get(arg) ?? 0) + 1);
    const lines: string[] = [];
    const written = new Map<number, string>();
    const text = (n: number): string => {
      const { op, value, each, wide } = nodes[n]!;
      if (op === "constant") return language.constant(value, wide);
      if (op === "scalar") return language.scalar(value);
      if (op === "count") return "count";
      return each || n === target ? written.get(n)! : `n${n}`;
    };
    for (const n of this.#leaves(parts)) {
      const { op, args, value, wide } = nodes[n]!;
      const slot = this.#isKept.has(n) ? this.#kept.get(n) : undefined;
      const [a, b, c] = slot === undefined ? args.map(text) : [];
      const value_ =
        slot !== undefined
          ? language.kept(slot, index)
          : op === "input"
            ? language.input(value, index)
            : op === "widen" || op === "narrow"
              ? language.convert(a!, wide)
              : op === "weight" || op === "log"
                ? language.call(op, a!)
                : op === "constant" || op === "scalar" || op === "count"
                  ? text(n)
                  : language.dialect.ops[op as Op][wide ? "f64" : language.dtype](a!, b ?? a!, c ?? a!);
      const name = `${index === "i" ? "t" : index}${n}`;
      if ((uses.get(n) ?? 0) > 1) {
        lines.push(language.declare(name, value_, wide, op === "less" ? "condition" : "number"));
        written.set(n, name);
      } else written.set(n, value_);
    }
    return { lines, value: written.get(target)! };
  }

  /** Those that are still needed where some are kept. */
  #leaves(parts: readonly number[]): number[] {
    const { nodes } = this.program;
    const needed = new Set([parts.at(-1)!]);
    for (const n of parts.toReversed()) {
      if (needed.has(n) && !this.#isKept.has(n)) for (const arg of nodes[n]!.args) needed.add(arg);
    }
    return parts.filter((n) => needed.has(n));
  }
}
