import { describe, it } from "vitest";
import { scratchFolder } from "../testing/fixtures";
import { killOneProcess, killRanks } from "../testing/programs/kill-loop";

const folder = scratchFolder();

describe("kills at random moments leave a newest step that is whole and of one life", () => {
  it.each([
    ["sync", 12],
    ["async", 12],
    ["overwrite", 12],
    ["large", 6],
  ] as const)("of one process, %s", async (mode, kills) => {
    await killOneProcess(folder.path, kills, mode);
  });

  it("of three processes that save together", async () => {
    await killRanks(folder.path, 10);
  });
});
