import { describe, it } from "vitest";
import { scratchFolder } from "../../testing/fixtures";
import { killOneProcess, killRanks } from "../../testing/programs/kill-loop";

const folder = scratchFolder();

describe("375 kills at random moments leave a newest step that is whole and of one life", () => {
  it.each(["sync", "async", "overwrite", "large"] as const)("75 of one process, %s", async (mode) => {
    console.log(mode, await killOneProcess(folder.path, 75, mode));
  });

  it("75 of three processes that save together", async () => {
    console.log("ranks", await killRanks(folder.path, 75));
  });
});
