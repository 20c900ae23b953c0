/** The cpu device: native kernels on JavaScript's own memory. Launches are done when they return. */
import { availableParallelism } from "node:os";
import { OptError } from "@opt/core";
import {
  type Backend,
  environmentVariable,
  FUSED_KINDS,
  type HostArguments,
  type HostKernels,
  type Kernel,
  type Kind,
  type Launch,
  type Memory,
  type PreparedLaunches,
  type Rule,
  type Spec,
  type TypedArray,
} from "@opt/core/backend";
import type { Addon } from "./addon";
import { CommandWriter } from "./command";
import { writeLaunch } from "./commands";
import { hostKernels } from "./host-kernels";
import { builtRule, compile, type Numbers } from "./kernel";
import type { CpuKernel } from "./launch";
import { loadAddon } from "./load-addon";
import { Allocator, CpuMemory, cpuMemory } from "./memory";
import { STATUS } from "./numbers";
import { prepared } from "./prepared";

export interface CpuOptions {
  /** "sse2", "avx2", "avx512", "neon"; by default `OPT_CPU_ISA`, or the best that the processor has. */
  readonly instructionSet?: string | undefined;
  /** By default `OPT_NUM_THREADS`, or one per core. */
  readonly threads?: number | undefined;
}
/** What reserved memory has for its bytes. */
const NOTHING = new Uint8Array();

class CpuBackend implements Backend {
  readonly name = "cpu";
  readonly dtypes = ["f32", "f64"] as const;
  readonly sharesMemory = true;
  readonly exact = true;
  readonly portable = true;
  readonly packs = true;
  readonly draws = true;
  readonly fuses = FUSED_KINDS;
  readonly epilogues = true;
  readonly windows = "both";
  readonly hostKernels: HostKernels;
  readonly #allocator: Allocator;
  private readonly command: CommandWriter;
  readonly #ruleNumbers: Numbers;
  readonly #rowNumbers: Numbers;

  constructor(
    private readonly addon: Addon,
    private readonly instructionSet: number,
    private readonly threads: number,
  ) {
    this.#allocator = new Allocator(addon);
    this.command = new CommandWriter(addon);
    this.hostKernels = hostKernels(addon, threads, (name, command) => this.#run(name, command));
    const numbered = (hashes: readonly string[]) => new Map(hashes.map((hash, number) => [hash, number]));
    this.#ruleNumbers = numbered(addon.ruleHashes());
    this.#rowNumbers = numbered(addon.rowHashes());
  }

  allocate(bytes: number): Memory {
    return this.#allocator.allocate(bytes);
  }

  reserve(bytes: number): Memory {
    return new CpuMemory(bytes, 0, NOTHING, 0, 0);
  }

  free(memory: Memory): void {
    this.#allocator.free(memory as CpuMemory);
  }

  wrap(array: TypedArray): Memory {
    return this.#allocator.wrap(array);
  }

  write(memory: Memory, byteOffset: number, bytes: Uint8Array): void {
    cpuMemory(memory).byteView(byteOffset, bytes.length).set(bytes);
  }

  readSync(memory: Memory, byteOffset: number, bytes: number): Uint8Array {
    return cpuMemory(memory).byteView(byteOffset, bytes).slice();
  }

  hostView(memory: Memory, byteOffset: number, bytes: number): Uint8Array {
    return cpuMemory(memory).byteView(byteOffset, bytes);
  }

  async read(memory: Memory, byteOffset: number, bytes: number): Promise<Uint8Array> {
    return this.readSync(memory, byteOffset, bytes);
  }

  kernel<K extends Kind>(spec: Spec<K>): Kernel<K> {
    return compile(spec as unknown as Spec, this.addon, this.#ruleNumbers, this.#rowNumbers) as unknown as Kernel<K>;
  }

  sumsRule(rule: Rule): boolean {
    return builtRule(rule, this.#ruleNumbers) !== undefined;
  }

  launch(launch: Launch): void {
    const { command } = this;
    command.begin((launch.kernel as CpuKernel).opcode, this.threads);
    writeLaunch(command, launch);
    this.#run(launch.kind, command);
  }

  prepare(launches: readonly Launch[], open: readonly Memory[]): PreparedLaunches {
    const { addon, threads } = this;
    return prepared({ addon, threads, run: (command) => this.#run("list", command) }, launches, open);
  }

  #run(what: What, command: CommandWriter): void {
    const status = this.addon.run(this.instructionSet, command.address);
    if (status !== STATUS.ok) throw failure(what, status);
  }

  async sync(): Promise<void> {}

  close(): void {
    this.#allocator.clear();
  }
}

/** What native code was running. */
type What = Kind | "list" | keyof HostArguments;

function failure(kind: What, status: number): OptError {
  if (status === STATUS.outOfMemory) {
    const advice = "Free tensors with dispose() or tidy().";
    return new OptError(
      "OUT_OF_MEMORY",
      `cpu ${kind}`,
      "the system has no memory for the kernel's scratch space.",
      advice,
    );
  }
  return new OptError(
    "INTERNAL",
    `cpu ${kind}`,
    `native code ended with status ${status}.`,
    "Please report this: it is a bug in Opt.",
  );
}

/**
 * Opens the device.
 *
 * @throws OptError DEVICE_UNAVAILABLE if there is no binary for this platform, or the processor lacks the instruction set or
 * `OPT_CPU_HIDE` hides it; BAD_ARGUMENT if the number of threads, or a name in `OPT_CPU_HIDE`, is invalid
 */
export function openCpuBackend({
  instructionSet = environmentVariable("OPT_CPU_ISA"),
  threads,
}: CpuOptions = {}): Backend {
  const addon = loadAddon();
  return new CpuBackend(addon, chooseInstructionSet(addon.instructionSets(), instructionSet), checkThreads(threads));
}

function defaultThreads(): number {
  const asked = environmentVariable("OPT_NUM_THREADS");
  return asked ? Number(asked) : availableParallelism();
}

/** @throws OptError BAD_ARGUMENT */
export function checkThreads(threads = defaultThreads()): number {
  if (Number.isInteger(threads) && threads >= 1 && threads <= 256) return threads;
  throw new OptError(
    "BAD_ARGUMENT",
    "cpu",
    `threads must be 1 to 256, got ${threads}.`,
    "Set OPT_NUM_THREADS, or leave it out for one per core.",
  );
}

const INSTRUCTION_SETS = ["sse2", "avx2", "avx512", "neon"];

/** The number of the wanted set, or of the best one. */
function chooseInstructionSet(sets: readonly (string | null)[], wanted: string | undefined): number {
  const hidden = environmentVariable("OPT_CPU_HIDE");
  const unknown = hidden?.split(",").find((name) => !INSTRUCTION_SETS.includes(name));
  if (unknown !== undefined) {
    throw new OptError(
      "BAD_ARGUMENT",
      "cpu",
      `OPT_CPU_HIDE must be a list of ${INSTRUCTION_SETS.join(", ")}, got "${hidden}".`,
      "Separate names by commas: OPT_CPU_HIDE=avx512,avx2.",
    );
  }
  const number = wanted ? sets.indexOf(wanted) : sets.findLastIndex((name) => name !== null);
  if (number >= 0) return number;
  const here = sets.filter((name) => name !== null).join(", ");
  throw new OptError(
    "DEVICE_UNAVAILABLE",
    "cpu",
    here === ""
      ? `an instruction set must be left, got OPT_CPU_HIDE=${hidden}.`
      : `the instruction set must be one of ${here} here, got "${wanted}".`,
    here === "" || hidden?.split(",").includes(wanted ?? "") ? "Unset OPT_CPU_HIDE." : "Unset OPT_CPU_ISA.",
  );
}
