import torch
from torch import nn
from torch.nn import functional as F

TEMPERATURE = 4


def program():
    teacher = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 5)).eval()
    student = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 5))
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)

    def step(x, labels):
        with torch.no_grad():
            soft = F.softmax(teacher(x) / TEMPERATURE, dim=-1)
        logits = student(x)
        like_teacher = F.kl_div(F.log_softmax(logits / TEMPERATURE, dim=-1), soft, reduction="batchmean")
        loss = 0.7 * TEMPERATURE**2 * like_teacher + 0.3 * F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return {"teacher": teacher, "student": student}, step
