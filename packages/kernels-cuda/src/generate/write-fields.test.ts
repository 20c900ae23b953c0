import { expect, it } from "vitest";
import { writeFields } from "./write-fields";

it("writes a struct of each launch, and one of sizes that several share", () => {
  const text = writeFields();
  expect(text).toContain(
    "template <typename T>\nstruct UnfoldFields {\n  WindowFields window;\n  const T* input;\n  T* output;\n};",
  );
  expect(text).toContain(
    "struct ChannelSizesFields {\n  Index outer;\n  Index channels;\n  Index inner;\n  double eps;\n};",
  );
  expect(text.match(/struct WindowFields/g)).toHaveLength(1);
});
