/** Who started this process as a rank, as its environment tells it: read once, before anything changes it. */
import { environmentVariable } from "@opt/core/backend";

export interface Launcher {
  /** Open MPI's mpirun; Hydra, that of MPICH and Intel MPI; or one that any library may answer, as srun. */
  readonly kind: "open-mpi" | "hydra" | "any";
  /** As far as the launcher tells it: what the library must agree with. */
  readonly rank: number | undefined;
  readonly size: number | undefined;
}

/** Holds the process that is the rank: programs that it starts inherit all these variables, and are no ranks. */
export const TAKEN = "OPT_MPI_RANK_PROCESS";

type Lookup = (name: string) => string | undefined;

/** Undefined where no launcher of MPI started this process. */
export function launcherOf(lookup: Lookup): Launcher | undefined {
  const number = (...names: string[]) => {
    const text = names.map(lookup).find((value) => value !== undefined);
    return text === undefined ? undefined : Number(text);
  };
  const rank = number("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK");
  const size = number("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS");
  const taken = lookup(TAKEN);
  if (taken !== undefined && taken !== String(process.pid)) return undefined;
  if (lookup("OMPI_COMM_WORLD_RANK") !== undefined) return { kind: "open-mpi", rank, size };
  // Hydra's control is on the host that launched alone; srun speaks PMI, too.
  const isHydra =
    ["HYDI_CONTROL_FD", "MPI_LOCALNRANKS"].some((name) => lookup(name) !== undefined) ||
    (lookup("PMI_FD") !== undefined && lookup("SLURM_PROCID") === undefined);
  if (rank !== undefined) return { kind: isHydra ? "hydra" : "any", rank, size };
  // srun without a plug-in of MPI: each of its tasks would train alone if this were no job.
  const isStep = lookup("SLURM_PROCID") !== undefined && (number("SLURM_STEP_NUM_TASKS") ?? 1) > 1;
  return isStep ? { kind: "any", rank: number("SLURM_PROCID"), size } : undefined;
}

export const launcher: Launcher | undefined = launcherOf(environmentVariable);
