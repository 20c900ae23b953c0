/** What an op is given for the samples of a batch, and how it runs for each of them alone. */
import { check } from "../errors/errors";
import { expand, reshape, slice, stack } from "../ops";
import { Tensor } from "../tensor/tensor";
import { Batched, type Level } from "./batched";

type Op = (...given: readonly unknown[]) => unknown;

/** `visit` for the tensors in lists and plain objects; everything else stays. */
export function eachTensor<Value>(value: Value, visit: (x: Tensor) => Tensor): Value {
  const each = (part: unknown): unknown => {
    if (typeof part !== "object" || part === null) return part;
    if (part instanceof Tensor) return visit(part);
    if (Array.isArray(part)) return part.map(each);
    if (Object.getPrototypeOf(part) !== Object.prototype) return part;
    return Object.fromEntries(Object.entries(part).map(([name, item]) => [name, each(item)]));
  };
  return each(value) as Value;
}

export class Samples {
  constructor(
    readonly op: Op,
    readonly given: readonly unknown[],
    readonly level: Level,
  ) {}

  has(x: unknown): x is Batched {
    return x instanceof Batched && x.level === this.level;
  }

  /** All samples of a tensor along its first axis; a tensor that they share as it is. */
  whole<Value>(value: Value): Value {
    return eachTensor(value, (x) => (this.has(x) ? x.whole : x));
  }

  /** The same, with what they share repeated. */
  repeated<Value>(value: Value): Value {
    return eachTensor(value, (x) => this.ofAll(x));
  }

  ofAll(x: Tensor): Tensor {
    return this.has(x) ? x.whole : expand(x, [this.level.size, ...x.shape]);
  }

  /** With axes of extent 1 before its own, so that it has `rank` of them beside the samples'. */
  aligned(x: Tensor, rank: number): Tensor {
    if (!this.has(x) || x.shape.length === rank) return this.whole(x);
    const missing = new Array<number>(rank - x.shape.length).fill(1);
    return reshape(x.whole, [this.level.size, ...missing, ...x.shape]);
  }

  /** Which of the samples that were given `whole` holds. */
  givenAs(whole: Tensor): Tensor | undefined {
    let found: Tensor | undefined;
    eachTensor(this.given, (x) => {
      if (this.has(x) && x.whole === whole) found = x;
      return x;
    });
    return found;
  }

  /** The op with other arguments. */
  run(...given: readonly unknown[]): unknown {
    return this.op(...given);
  }

  /** The op for one sample after another: for what has no rule. */
  oneByOne(): unknown {
    const { size } = this.level;
    check(
      size > 0,
      "UNSUPPORTED",
      "vmap",
      () => `${this.op.name} runs sample by sample, and there are none.`,
      "Leave out batches of 0.",
    );
    const results = Array.from({ length: size }, (_, i) =>
      this.run(...eachTensor(this.given, (x) => this.#sample(x, i))),
    );
    const [first] = results;
    const lists = results.map(tensorsIn);
    let place = 0;
    return eachTensor(first, () => {
      const own = lists.map((list) => list[place]!);
      place++;
      return stack(own);
    });
  }

  #sample(x: Tensor, i: number): Tensor {
    return this.has(x) ? reshape(slice(x.whole, i, i + 1), x.shape) : x;
  }
}

function tensorsIn(value: unknown): Tensor[] {
  const found: Tensor[] = [];
  eachTensor(value, (x) => {
    found.push(x);
    return x;
  });
  return found;
}
