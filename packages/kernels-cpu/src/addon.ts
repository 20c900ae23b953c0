/** The native addon: where its binary comes from, and its handful of functions. */
import { createRequire } from "node:module";
import { check, OptError, type TypedArray } from "@opt/core";
import { environmentVariable } from "@opt/core/backend";
import { COMMAND_FORMAT } from "./opcode";

/** Functions of native/cpu/src/addon.cc. */
export interface Addon {
  /** Names of the instruction sets that the binary holds, best last; null where this processor lacks one. */
  instructionSets(): (string | null)[];
  /** The format of the commands that it reads. */
  commandFormat(): number;
  /** Hashes of the rules compiled ahead; a rule's place is its number. */
  ruleHashes(): string[];
  /** Where the bytes of a view lie, until its buffer is detached. */
  address(view: TypedArray): number;
  /** `touched`: it has been written to, and has its pages. */
  adviseHugePages(address: number, bytes: number, touched: boolean): void;
  /** Detaches the buffer of a view, which frees its memory at once. */
  release(view: TypedArray): void;
  /** Carries out the command at an address. */
  run(instructionSet: number, command: number): number;
  /** zlib's CRC-32 of bytes that follow others, whose checksum is `before`; absent where the processor has nothing for it. */
  crc32?(bytes: Uint8Array, before: number): number;
}

const require = createRequire(import.meta.url);

/** linux-x64-gnu, linux-arm64-musl, darwin-arm64, win32-x64: the end of the platform package's name. */
export function platformName(): string {
  const { platform, arch } = process;
  return platform === "linux" ? `linux-${arch}-${isMusl() ? "musl" : "gnu"}` : `${platform}-${arch}`;
}

/** Only Node's report tells it. Other runtimes have none, or refuse it (Deno without permissions): they are built for glibc. */
function isMusl(): boolean {
  try {
    const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
    return header !== undefined && header.glibcVersionRuntime === undefined;
  } catch {
    return false;
  }
}

/**
 * Loads the binary of a platform from its package. `OPT_CPU_BINARY` names a file instead.
 *
 * @throws OptError DEVICE_UNAVAILABLE naming the package that is missing, or of another version than this one
 */
export function loadAddon(platform = platformName(), binary = environmentVariable("OPT_CPU_BINARY")): Addon {
  const name = `@opt/kernels-cpu-${platform}`;
  const path = binary || name;
  let addon: Addon;
  try {
    addon = require(path) as Addon;
  } catch (cause) {
    const missing = (cause as { code?: string }).code === "MODULE_NOT_FOUND";
    const problem = missing ? `${path} is not installed.` : `${path} does not load: ${String(cause)}.`;
    const advice = `Install ${name} where it exists (npm leaves it out with --omit=optional); device "wasm" of @opt/kernels-wasm serves without it.`;
    throw new OptError("DEVICE_UNAVAILABLE", "cpu", problem, advice, { cause });
  }
  const format = (addon as Partial<Addon>).commandFormat?.();
  check(
    format === COMMAND_FORMAT,
    "DEVICE_UNAVAILABLE",
    "cpu",
    () =>
      `${path} must read commands of format ${COMMAND_FORMAT}, got ${format ?? "one without a format"}: it is of another version.`,
    "Install it anew; in a checkout, node tools/build-native.mjs.",
  );
  return addon;
}
