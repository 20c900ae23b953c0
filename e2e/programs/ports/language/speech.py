import torch
from torch import nn
from torch.nn import functional as F


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 6, 3, padding=1)
        self.lstm = nn.LSTM(6, 5, bidirectional=True)
        self.output = nn.Linear(10, 5)

    def forward(self, sounds):
        hidden, _ = self.lstm(F.relu(self.conv(sounds)).permute(2, 0, 1))
        return F.log_softmax(self.output(hidden), dim=-1)


def program():
    model = Recognizer()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def step(sounds, texts, sound_lengths, text_lengths):
        loss = F.ctc_loss(model(sounds), texts, sound_lengths, text_lengths, zero_infinity=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return {"model": model}, step
