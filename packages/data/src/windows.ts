/** Samples of a long sequence for models that predict the next token. */
import { check, checkOptions, show, type Tensor, type TypedArray, tensor } from "@opt/core";
import { type BatchedDataset, checkIndex, checkIndices } from "./dataset";
import { rowsOf } from "./rows";

const WHERE = "Windows";

/**
 * Sample i is tokens [i stride, i stride + length) and, as labels, those that follow them by one: [i stride + 1, i stride + length + 1).
 *
 * @example
 * const [x, y] = new Windows(Int32Array.of(5, 6, 7, 8), { length: 3 }).get(0); // 5 6 7 and 6 7 8
 */
export class Windows implements BatchedDataset<[Tensor, Tensor], [Tensor, Tensor]> {
  /** How many windows there are. */
  readonly length: number;
  readonly #size: number;
  readonly #stride: number;

  /**
   * @param options tokens in a window and, from one window to the next, `stride` of them: default 1
   * @throws OptError BAD_ARGUMENT, also for fewer tokens than one window and its last label
   */
  constructor(
    private readonly tokens: TypedArray,
    options: { length: number; stride?: number },
  ) {
    checkOptions(WHERE, options, { length: "number", stride: "number" });
    const { length, stride = 1 } = options;
    check(
      ArrayBuffer.isView(tokens) && !(tokens instanceof DataView),
      "BAD_ARGUMENT",
      WHERE,
      () => `tokens must be a typed array, got ${show(tokens)}.`,
    );
    for (const [name, extent] of Object.entries({ length, stride })) {
      const isCount = Number.isInteger(extent) && extent >= 1;
      check(
        isCount,
        "BAD_ARGUMENT",
        WHERE,
        () => `${name} must be an integer >= 1, got ${show(extent)}.`,
        "For example 64.",
      );
    }
    check(
      tokens.length > length,
      "BAD_ARGUMENT",
      WHERE,
      () => `needs more than length = ${length} tokens, got ${tokens.length}.`,
      "Each window has a token behind it, its last label.",
    );
    this.#size = length;
    this.#stride = stride;
    this.length = Math.floor((tokens.length - 1 - length) / stride) + 1;
  }

  get(index: number): [Tensor, Tensor] {
    checkIndex(WHERE, index, this.length);
    return this.#tensors(Int32Array.of(index), [this.#size]);
  }

  batch(indices: Int32Array): [Tensor, Tensor] {
    checkIndices(WHERE, indices, this.length);
    return this.#tensors(indices, [indices.length, this.#size]);
  }

  #tensors(indices: Int32Array, shape: number[]): [Tensor, Tensor] {
    const rows = (offset: number) => {
      const starts = Int32Array.from(indices, (index) => index * this.#stride + offset);
      return tensor(rowsOf(this.tokens, starts, this.#size), { shape });
    };
    return [rows(0), rows(1)];
  }
}
