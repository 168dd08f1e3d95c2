"""Operations whose names may still change."""
