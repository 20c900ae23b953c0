import { describe, it } from "vitest";
import { scratchFolder } from "../testing/fixtures";
import { killLoop } from "../testing/kill-loop";

const folder = scratchFolder();

describe("200 kills at random moments of saves", () => {
  it("leave a latest step that loads whole and verifies", () => killLoop(folder.path, 200));
});
