/** A variable of TF.js and its values in a typed array, which steps overwrite: the one place that knows who else may see that array. */
import { type DataId, engine, getBackend, type KernelBackend, tensor, type Variable } from "@tensorflow/tfjs-core";

/** What a backend does with an array that a tensor is made of. Others keep it until they first need it, and must be given a copy. */
const HOSTS: Readonly<Record<string, "worksInIt" | "copiesIt">> = { cpu: "worksInIt", wasm: "copiesIt" };

/** Values that a backend reads from our array. */
interface Loan {
  readonly backend: KernelBackend;
  readonly dataId: DataId;
}

export class VariableArray {
  readonly array: Float32Array;
  /** The values that the array holds, too; the variable's own, unless the program has assigned others. */
  #known: DataId | null = null;
  private loan: Loan | null = null;

  constructor(
    readonly variable: Variable,
    private readonly inPlace: boolean,
  ) {
    this.array = new Float32Array(variable.size);
  }

  /** Before a step: the variable's values are in the array, and nobody else reads them there. True if they may have changed since the last one. */
  bringIn(): boolean {
    const { variable, array, loan } = this;
    const isKnown = variable.dataId === this.#known;
    if (loan !== null) {
      const readers = loan.backend.refCount(loan.dataId);
      const others = readers - (isKnown ? 1 : 0);
      // Clones share a variable's values, which they keep: in an array of their own from now on.
      if (others > 0) loan.backend.move(loan.dataId, array.slice(), variable.shape, variable.dtype, readers);
      if (others > 0 || readers === 0) this.loan = null;
    }
    if (!isKnown) array.set(variable.dataSync());
    this.#known = variable.dataId;
    return !isKnown || this.loan !== null; // the program may write into what it has on loan
  }

  /** After a step: the variable has the array's values. */
  takeOut(): void {
    if (this.loan !== null) return;
    const { variable, array } = this;
    const host = HOSTS[getBackend()];
    const isLent = host === "worksInIt" && this.inPlace;
    const values = tensor(isLent || host === "copiesIt" ? array : array.slice(), variable.shape, "float32");
    variable.assign(values);
    values.dispose();
    this.#known = variable.dataId;
    if (isLent) this.loan = { backend: engine().backend, dataId: variable.dataId };
  }
}
