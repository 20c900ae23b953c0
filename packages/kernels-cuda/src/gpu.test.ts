/** The device on a real GPU, as its users meet it. */
import { whyUnavailable } from "@opt/testkit";
import { deviceSuite, orderSuite } from "../testing/device-suite";
import { openCudaBackend } from "./backend";

const reason = await whyUnavailable(async () => openCudaBackend());
deviceSuite({ name: "cuda", open: openCudaBackend, reason });
orderSuite({ name: "cuda streams", open: openCudaBackend, reason });
