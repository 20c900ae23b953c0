/** The launchers of this machine, and why one that is missing is skipped. */
import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { triesAll } from "@opt/testkit";
import type { Launcher } from "../../parallel/testing/job";

export interface NamedLauncher {
  readonly name: string;
  /** Undefined where it is there. */
  readonly missing: string | undefined;
  readonly launcher: Launcher;
}

/** The first of these commands whose `--version` says what is expected. */
function commandOf(commands: readonly string[], says: RegExp): string | undefined {
  return commands.find((command) => says.test(spawnSync(command, ["--version"], { encoding: "utf8" }).stdout ?? ""));
}

function named(name: string, command: string | undefined, options: readonly string[], debian: string): NamedLauncher {
  const missing = command === undefined ? ` (no ${name}: Debian package ${debian})` : undefined;
  const launcher: Launcher = (size, program) => ({
    command: command!,
    args: [...options, "-n", String(size), process.execPath, program],
  });
  return { name, missing, launcher };
}

/** Two launchers that make the same folder of sessions at once break each other: each test file has its own. */
const sessions = mkdtempSync(join(tmpdir(), "ompi-"));

export const openMpi = named(
  "Open MPI",
  commandOf(["mpirun.openmpi", "mpirun"], /Open MPI/),
  ["--allow-run-as-root", "--oversubscribe", "--mca", "orte_tmpdir_base", sessions],
  "openmpi-bin",
);
export const mpich = named("MPICH", commandOf(["mpirun.mpich", "mpiexec.hydra", "mpirun"], /HYDRA/), [], "mpich");

export const launchers: readonly NamedLauncher[] = [openMpi, mpich];

/**
 * The cases of a table that a launcher tries: all in `npm run test:full`, else every launcher that is here tries its share.
 * What differs between the libraries is in collectives.test.ts and training.test.ts, which try all.
 */
export function shareOf<Case>(launcher: NamedLauncher, table: readonly Case[]): readonly Case[] {
  const present = launchers.filter(({ missing }) => missing === undefined);
  if (triesAll || launcher.missing !== undefined) return table;
  return table.filter((_, i) => present[i % present.length] === launcher);
}

/** What a program of a test imports to be a rank of MPI. */
export const IMPORTS = `import "${new URL("../src/index.ts", import.meta.url).pathname}";`;
