import { optimizerPackages } from "@opt/testkit/optimizers";
import { expect, it } from "vitest";
import * as optim from "./index";

it.each((await optimizerPackages()).map((each) => [each.name, each] as const))("exports all of %s", (_, { entry }) => {
  expect(optim).toMatchObject(entry);
});
