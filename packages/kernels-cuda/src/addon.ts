/** The native addon: where its binary and its kernels come from, and the libraries that it opens. */
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { OptError } from "@opt/core";
import { environmentVariable, loadBinary } from "@opt/core/backend";
import type { CompilerTable } from "./compiler";
import { DRIVER_FUNCTIONS, type Driver } from "./driver";

/** A library's functions by name, or the system's words on why it does not open. */
type OpenedLibrary<Table> = (Table & { readonly library: number }) | string;

/** Functions of native/cuda/src/addon.cc. */
export interface Addon {
  readonly doorVersion: number;
  open(kind: "driver", path: string): OpenedLibrary<Partial<Driver>>;
  open(kind: "compiler", path: string): OpenedLibrary<CompilerTable>;
  errorText(library: number, status: number): string;
  bindLaunch(library: number): Driver["launch"] | undefined;
  bindCopyInOrder(library: number): Driver["copyInOrder"] | undefined;
  waitForEvent(library: number, context: number, event: number): Promise<number>;
  store(address: number, bytes: Uint8Array): void;
  load(bytes: Uint8Array, address: number): void;
  /** The address of a null-terminated copy, kept for good. */
  textAddress(text: string): number;
}

/** What this code and the binary agree on. */
const DOOR = 1;

const require = createRequire(import.meta.url);
const SERVES = 'The devices "cpu" and "wasm" serve without it.';

function unavailable(problem: string, advice: string, cause?: unknown): OptError {
  return new OptError("DEVICE_UNAVAILABLE", "cuda", problem, advice, { cause });
}

/** The folder of the binaries: that of the platform's package. */
export function binaryFolder(platform = `${process.platform}-${process.arch}`): string {
  const name = `@opt/kernels-cuda-${platform}`;
  try {
    return dirname(require.resolve(`${name}/package.json`));
  } catch (cause) {
    const advice = `Install ${name} where it exists (npm leaves it out with --omit=optional). ${SERVES}`;
    throw unavailable(`the package ${name} is not installed.`, advice, cause);
  }
}

/** @throws OptError DEVICE_UNAVAILABLE if the folder's binary does not load, or is of another version than this one */
export function loadAddon(folder: string): Addon {
  return loadBinary<Addon>({
    require,
    path: join(folder, "opt_cuda.node"),
    where: "cuda",
    version: DOOR,
    versionOf: (addon) => addon.doorVersion,
    install: SERVES,
    build: "npx nx native native-cuda",
  });
}

/**
 * The driver's functions. `OPT_CUDA_DRIVER` names another library than the system's.
 *
 * @throws OptError DEVICE_UNAVAILABLE if there is no driver, or one without functions that are needed
 */
export function openDriver(addon: Addon, path = environmentVariable("OPT_CUDA_DRIVER") ?? "libcuda.so.1"): Driver {
  const table = addon.open("driver", path);
  if (typeof table === "string") throw unavailable(`no NVIDIA driver: ${table}.`, SERVES);
  const { library } = table;
  const driver: Partial<Driver> = {
    ...table,
    launch: addon.bindLaunch(library) as Driver["launch"],
    copyInOrder: addon.bindCopyInOrder(library) as Driver["copyInOrder"],
    errorText: (status) => addon.errorText(library, status),
    waitForEvent: (context, event) => addon.waitForEvent(library, context, event),
    store: addon.store,
    load: addon.load,
  };
  const missing = DRIVER_FUNCTIONS.filter((name) => driver[name] === undefined);
  if (missing.length === 0) return driver as Driver;
  throw unavailable(`the NVIDIA driver is too old: it has no ${missing.join(", ")}.`, `Update it. ${SERVES}`);
}

/**
 * Opens the first of a library's usual names and places that has all that is needed of it; `OPT_CUDA_LIBRARIES` names folders to look in
 * first, separated by colons.
 */
export function openFirst<Table>(
  open: (path: string) => OpenedLibrary<Table>,
  name: string,
  needed: readonly (keyof Table)[],
): Table | undefined {
  const first =
    environmentVariable("OPT_CUDA_LIBRARIES")
      ?.split(":")
      .filter((folder) => folder !== "") ?? [];
  const versions = ["", ".13", ".12"].map((version) => `${name}.so${version}`);
  for (const folder of [...first, "", "/usr/local/cuda/lib64"]) {
    for (const file of versions) {
      if (folder !== "") for (const own of partsOf(folder, name)) open(own);
      const table = open(join(folder, file));
      if (typeof table !== "string" && needed.every((each) => table[each] !== undefined)) return table;
    }
  }
  return undefined;
}

/** Libraries that a library looks for by name alone: loaded from its own folder, they are found. */
function partsOf(folder: string, name: string): string[] {
  try {
    const files = readdirSync(folder).filter((file) => file.startsWith(`${name}-builtins.so.`));
    return files.map((file) => join(folder, file));
  } catch {
    return [];
  }
}
