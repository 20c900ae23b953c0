/** Which launcher started a process, and which library is asked first. */
import { describe, expect, it } from "vitest";
import { type Addon, loadAddon } from "./addon";
import { openMpi } from "./index";
import { launcherOf, TAKEN } from "./launcher";
import { candidates, openLibrary } from "./library";

describe("a launcher is known by its variables", () => {
  it.each([
    ["none", {}, undefined],
    ["Open MPI", { OMPI_COMM_WORLD_RANK: "1", OMPI_COMM_WORLD_SIZE: "4", PMIX_RANK: "1" }, ["open-mpi", 1, 4]],
    ["Hydra", { PMI_RANK: "0", PMI_SIZE: "2", HYDI_CONTROL_FD: "7" }, ["hydra", 0, 2]],
    ["Hydra on another host", { PMI_RANK: "1", PMI_SIZE: "2", MPI_LOCALNRANKS: "1" }, ["hydra", 1, 2]],
    ["Hydra's PMI", { PMI_RANK: "1", PMI_SIZE: "2", PMI_FD: "9" }, ["hydra", 1, 2]],
    ["srun with PMI2", { PMI_RANK: "3", PMI_SIZE: "8", PMI_FD: "9", SLURM_PROCID: "3" }, ["any", 3, 8]],
    ["srun with PMIx", { PMIX_RANK: "3", SLURM_STEP_NUM_TASKS: "8" }, ["any", 3, 8]],
    ["srun with neither", { SLURM_PROCID: "1", SLURM_STEP_NUM_TASKS: "2" }, ["any", 1, 2]],
    ["a batch script", { SLURM_PROCID: "0", SLURM_NTASKS: "4" }, undefined],
    ["a program that a rank started", { PMI_RANK: "0", PMI_SIZE: "2", [TAKEN]: "1" }, undefined],
    ["the rank itself", { PMI_RANK: "0", PMI_SIZE: "2", [TAKEN]: String(process.pid) }, ["any", 0, 2]],
  ] as const)("%s", (_, variables, expected) => {
    const found = launcherOf((name) => (variables as Record<string, string>)[name]);
    expect(found && [found.kind, found.rank, found.size]).toEqual(expected);
  });
});

describe("libraries", () => {
  it.each([
    ["open-mpi", "libmpi.so.40"],
    ["hydra", "libmpich.so.12"],
    ["any", "libmpi_abi.so.0"],
  ] as const)("of %s begin with its own", (kind, first) => {
    expect(candidates({ kind, rank: 0, size: 1 }, "linux")[0]).toBe(first);
    expect(candidates({ kind, rank: 0, size: 1 }, "linux").sort()).toHaveLength(5);
  });

  it("have other names on macOS", () => {
    const files = candidates({ kind: "open-mpi", rank: 0, size: 1 }, "darwin");
    expect(files.slice(0, 2)).toEqual(["libmpi.40.dylib", "/opt/homebrew/lib/libmpi.40.dylib"]);
    expect(files).toContain("libmpi.dylib");
  });

  const none: Pick<Addon, "open"> = { open: (path) => `${path}: no such file` };
  it.each([
    ["none is there", undefined, /no MPI library opens \(libmpi\.so\.40, .*Debian: openmpi-bin or mpich/],
    ["the chosen one is not", "libx.so", /OPT_MPI_LIBRARY does not open: libx\.so: no such file/],
  ])("are rejected where %s", (_, chosen, message) => {
    const open = () => openLibrary(none, { kind: "open-mpi", rank: 0, size: 1 }, chosen);
    expect(open).toThrow(
      expect.objectContaining({ code: "DEVICE_UNAVAILABLE", message: expect.stringMatching(message) }),
    );
  });
});

it("without a launcher there is no engine", () =>
  expect(openMpi()).rejects.toMatchObject({ code: "DEVICE_UNAVAILABLE", message: expect.stringContaining("mpirun") }));

it.each([
  ["that is not installed", "linux-vax", undefined],
  ["of another version", "linux-x64", new URL("../testing/other-version.cjs", import.meta.url).pathname],
])("a binary %s is rejected by name", (_, platform, binary) => {
  expect(() => loadAddon(platform, binary)).toThrow(expect.objectContaining({ code: "DEVICE_UNAVAILABLE" }));
});
