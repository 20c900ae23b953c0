/** Which MPI library speaks with the launcher that started this process. */
import { OptError } from "@opt/core";
import { environmentVariable } from "@opt/core/backend";
import type { Addon } from "./addon";
import type { Launcher } from "./launcher";

const STANDARD = ["libmpi_abi.so.0"];
const OPEN_MPI = ["libmpi.so.40", "libmpi.so"];
const MPICH = ["libmpich.so.12", "libmpi.so.12"];

/** The launcher's own first: a library of another one would find itself alone in its job. */
export function candidates({ kind }: Launcher, platform: NodeJS.Platform = process.platform): string[] {
  const names = {
    "open-mpi": [...OPEN_MPI, ...STANDARD, ...MPICH],
    hydra: [...MPICH, ...STANDARD, ...OPEN_MPI],
    any: [...STANDARD, ...[...OPEN_MPI].reverse(), ...[...MPICH].reverse()],
  }[kind];
  if (platform !== "darwin") return names;
  const folders = ["", "/opt/homebrew/lib/", "/usr/local/lib/", "/opt/local/lib/"];
  const files = names.map((name) => name.replace(/\.so\.?(\d*)$/, (_, version) => `${version && `.${version}`}.dylib`));
  return files.flatMap((file) => folders.map((folder) => `${folder}${file}`));
}

/**
 * Opens the first that is there: `OPT_MPI_LIBRARY`, what the process has already (LD_PRELOAD), or the launcher's. Returns its name.
 *
 * @throws OptError DEVICE_UNAVAILABLE saying what to install
 */
export function openLibrary(
  addon: Pick<Addon, "open">,
  launcher: Launcher,
  chosen = environmentVariable("OPT_MPI_LIBRARY"),
): string {
  const problems: string[] = [];
  for (const path of chosen ? [chosen] : [null, ...candidates(launcher)]) {
    const opened = addon.open(path);
    if (typeof opened !== "string") return path ?? "the library that this process has already";
    if (path !== null) problems.push(opened);
  }
  if (chosen) {
    const advice = "Name the file of an MPI library, as /usr/lib/x86_64-linux-gnu/libmpi.so.40.";
    throw new OptError("DEVICE_UNAVAILABLE", "mpi", `OPT_MPI_LIBRARY does not open: ${problems[0]}.`, advice);
  }
  const found = `no MPI library opens (${candidates(launcher).join(", ")}).`;
  const advice =
    "Install the one of your launcher (Debian: openmpi-bin or mpich; macOS: brew install open-mpi; clusters: module load), or name its file in OPT_MPI_LIBRARY.";
  throw new OptError("DEVICE_UNAVAILABLE", "mpi", found, advice);
}
