"""The section ``report`` of the configuration, of which each rule reads its own part."""

from workflow_scripts.config import Slice
from workflow_scripts.evaluation.layer_attention import Config as LayerAttention
from workflow_scripts.evaluation.token_similarity import Config as TokenSimilarity
from workflow_scripts.reporting.alignment_uniformity import Config as AlignmentUniformity
from workflow_scripts.reporting.attention_maps import Config as AttentionMaps
from workflow_scripts.reporting.cosine_density import Config as CosineDensity
from workflow_scripts.reporting.learning_curves import Config as LearningCurves
from workflow_scripts.reporting.page import Config as PageConfig
from workflow_scripts.reporting.style import FigureStyle


class Report(Slice):
    """Figures and page."""

    figure: FigureStyle
    learning_curves: LearningCurves
    cosine_density: CosineDensity
    alignment_uniformity: AlignmentUniformity
    attention_maps: AttentionMaps
    layer_attention: LayerAttention
    token_similarity: TokenSimilarity
    page: PageConfig
