/** Processes that a launcher started as ranks do not quietly become jobs of one. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { connect } from "./connect";
import "./index";

afterEach(() => void vi.unstubAllEnvs());

describe.each(["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"])("%s says that MPI started two ranks", (variable) => {
  it("which needs its engine, or is said to be meant", async () => {
    vi.stubEnv(variable, "2");
    await expect(connect()).rejects.toMatchObject({
      code: "DEVICE_UNAVAILABLE",
      message: expect.stringMatching(/MPI started 2 ranks.*Import "@opt\/collectives-mpi"/),
    });
    expect((await connect({ engine: "single" })).size).toBe(1);
  });

  it("which a program that a rank started only inherits", async () => {
    vi.stubEnv(variable, "2");
    vi.stubEnv("OPT_MPI_RANK_PROCESS", "1");
    expect((await connect()).size).toBe(1);
  });
});

it("who connects again gets the same communicator, and no other timeout", async () => {
  await (await connect()).close();
  const first = await connect({ timeout: 5000 });
  expect(await connect()).toBe(first);
  expect(await connect({ timeout: 5000 })).toBe(first);
  await expect(connect({ timeout: 6000 })).rejects.toMatchObject({
    code: "BAD_ARGUMENT",
    message: expect.stringContaining("connected with a timeout of 5000 milliseconds, got 6000"),
  });
  await first.close();
});
