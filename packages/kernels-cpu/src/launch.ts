/** What the device's kernels carry, and launches of such kernels. */
import type { Kernel, Kind, Launch, Rule } from "@opt/core/backend";

export interface CpuKernel<K extends Kind = Kind> extends Kernel<K> {
  readonly opcode: number;
  /** Of a rule that was compiled ahead. */
  readonly ruleNumber?: number;
  /** Of a rule whose number is that of the rule that it was made from. */
  readonly modified?: NonNullable<Rule["modified"]>;
  /** Of a row program. */
  readonly rowsNumber?: number;
  /** Of a program that runs through the block interpreter: kept here because native code reads it in place. */
  readonly code?: Float64Array;
  readonly codeAddress?: number;
  /** Where the codes of packed buffers lie, of rules that have such. */
  readonly codebooks?: readonly number[];
}

/** A launch of a kernel of this device. */
export type On<K extends Kind> = Launch<K> & { readonly kernel: CpuKernel<K> };
