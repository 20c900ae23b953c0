/** The launchers of MPI: which is there, and how each starts ranks on hosts. */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { GRACE } from "../local/launcher";

export interface Host {
  readonly name: string;
  /** Ranks that it takes. */
  readonly slots: number;
}

export interface MpiLauncher {
  readonly command: string;
  /** Its options in front of the program. `grace`: seconds that ranks have to end; `isPlain`: lines without their rank. */
  options(hosts: readonly Host[], choice: { readonly grace: number; readonly isPlain: boolean }): string[];
  /** What a line begins with that a rank has written: its first group is the rank. */
  readonly tag: RegExp;
  /** What it needs in its environment; `file` is a path that it may write. */
  environment?(hosts: readonly Host[], file: string): Record<string, string>;
}

export const ranksOf = (hosts: readonly Host[]) => hosts.reduce((sum, { slots }) => sum + slots, 0);
const listOf = (hosts: readonly Host[]) => hosts.map(({ name, slots }) => `${name}:${slots}`).join(",");

/** Variables that belong to a machine, a login or another launcher. */
const OWN =
  /^(_|HOME|HOST|HOSTNAME|LOGNAME|LS_COLORS|MAIL|OLDPWD|PWD|SHELL|SHLVL|TERM|TMP|TEMP|TMPDIR|USER|DISPLAY|(DBUS|OMPI|PMI|PMIX|PRTE|SLURM|SSH|XDG)_.*)$/;

const openMpi = (command: string): MpiLauncher => ({
  command,
  options(hosts, { grace, isPlain }) {
    const names = Object.keys(process.env).filter((name) => /^\w+$/.test(name) && !OWN.test(name));
    return [
      ...["--host", listOf(hosts), "-n", String(ranksOf(hosts)), "--bind-to", "none"],
      // It waits so long whenever a rank fails, also for ranks that have ended.
      ...(grace === GRACE ? [] : ["--mca", "odls_base_sigkill_timeout", String(grace)]),
      ...(isPlain ? [] : ["--tag-output"]),
      ...names.flatMap((name) => ["-x", name]),
    ];
  },
  tag: /^\[[^\]]*?(\d+)\]<std(?:out|err)>: ?/,
});

/** That of MPICH and Intel MPI, which hands on the whole environment. */
const hydra = (command: string): MpiLauncher => ({
  command,
  options: (hosts, { isPlain }) => [
    ...["-hosts", listOf(hosts), "-n", String(ranksOf(hosts))],
    ...(isPlain ? [] : ["-prepend-rank"]),
  ],
  tag: /^\[(\d+)\] ?/,
});

const slurm: MpiLauncher = {
  command: "srun",
  options: (hosts, { isPlain }) => [
    ...["--ntasks", String(ranksOf(hosts)), "--distribution=arbitrary", "--kill-on-bad-exit=1"],
    ...(isPlain ? [] : ["--label"]),
  ],
  tag: /^ *(\d+): ?/,
  environment(hosts, file) {
    writeFileSync(file, hosts.flatMap(({ name, slots }) => new Array(slots).fill(name)).join("\n"));
    return { SLURM_HOSTFILE: file };
  },
};

/** `srun` within an allocation of Slurm, else `mpirun`, else `mpiexec`; undefined without one. */
export function findLauncher(): MpiLauncher | undefined {
  const version = (command: string) =>
    spawnSync(command, ["--version"], { encoding: "utf8", timeout: 10_000 }).stdout ?? "";
  if (process.env.SLURM_JOB_ID !== undefined && /slurm/i.test(version("srun"))) return slurm;
  for (const command of ["mpirun", "mpiexec"]) {
    const said = version(command);
    if (/Open ?MPI|OpenRTE|PRRTE/i.test(said)) return openMpi(command);
    if (/HYDRA|Intel\(R\) MPI/.test(said)) return hydra(command);
  }
  return undefined;
}
