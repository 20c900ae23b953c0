/** Where a package's native binary comes from: the package of its platform. Each package brings its own `require`, so that its own dependencies are searched. */
import { check, OptError } from "../errors/errors";

/** A native binary, and what is said where it does not serve. */
export interface NativeBinary<Addon> {
  readonly require: (path: string) => unknown;
  /** The name of the platform's package, or a file. */
  readonly path: string;
  /** Who throws: "cpu". */
  readonly where: string;
  /** What this code and the binary agree on, and how the binary is asked for it. */
  readonly version: number;
  readonly versionOf: (addon: Partial<Addon>) => number | undefined;
  /** To install where it is missing, and to build in a clone. */
  readonly install: string;
  readonly build: string;
}

/** linux-x64-gnu, linux-arm64-musl, darwin-arm64, win32-x64: the end of the name of a platform's package. */
export function platformName(): string {
  const { platform, arch } = process;
  return platform === "linux" ? `linux-${arch}-${isMusl() ? "musl" : "gnu"}` : `${platform}-${arch}`;
}

/** Only Node's report has it. Other runtimes have no report, or forbid it (Deno without permissions); they are built for glibc. */
function isMusl(): boolean {
  try {
    const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
    return header !== undefined && header.glibcVersionRuntime === undefined;
  } catch {
    return false;
  }
}

/**
 * Loads a package's native binary.
 *
 * @throws OptError DEVICE_UNAVAILABLE if it is missing, does not load, or is of another version than the code that asks
 */
export function loadBinary<Addon>(binary: NativeBinary<Addon>): Addon {
  const { where, path, version } = binary;
  const addon = required(binary);
  const got = binary.versionOf(addon);
  check(
    got === version,
    "DEVICE_UNAVAILABLE",
    where,
    () => `${path} must be of version ${version}, got ${got ?? "one without a version"}.`,
    `Install packages of one release; in a clone, run ${binary.build}.`,
  );
  return addon as Addon;
}

function required<Addon>({ require, path, where, install, build }: NativeBinary<Addon>): Partial<Addon> {
  try {
    return require(path) as Partial<Addon>;
  } catch (cause) {
    const isMissing = (cause as { code?: string }).code === "MODULE_NOT_FOUND";
    const problem = isMissing ? `${path} is not installed.` : `${path} does not load: ${String(cause)}.`;
    throw new OptError("DEVICE_UNAVAILABLE", where, problem, `${install} In a clone, run ${build}.`, { cause });
  }
}
