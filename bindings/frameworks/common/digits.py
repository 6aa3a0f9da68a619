# SPDX-License-Identifier: Apache-2.0
"""The handwritten digits, and what the examples demand of themselves."""

import pathlib
import sys

import numpy as np

CSV = pathlib.Path(__file__).parents[2] / "c" / "data" / "optdigits.csv"
#: What a linear classifier (least squares on the pixels) reaches on these test images: a network
#: that is no better has not learnt.
LINEAR_ACCURACY = 0.93
#: What needs no training at all: the class whose mean image is nearest.
NEAREST_MEAN_ACCURACY = 0.88


def load():
    """Training and test images with their labels: (pixels, labels), (pixels, labels). Pixels are
    float32 of shape (images, 64), from 0 (paper) to 1 (ink); every fifth image is for testing."""
    table = np.loadtxt(CSV, delimiter=",", dtype=np.float32)
    pixels, labels = table[:, :-1] / 16, table[:, -1].astype(np.int32)
    test = np.arange(len(table)) % 5 == 0
    return (pixels[~test], labels[~test]), (pixels[test], labels[test])


def noise(accuracy, images):
    """Two standard errors of an accuracy that is measured on so many images: a smaller loss is not
    told from chance."""
    return 2 * (accuracy * (1 - accuracy) / images) ** 0.5


def expect(truth, what):
    """Ends the program with a message and exit code 1 unless ``truth``."""
    if not truth:
        sys.exit(f"FAILED: {what}")
